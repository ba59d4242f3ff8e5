/* python_probe.c -- the call by which a thread verifies a pointer (python_call.h). */
#include "bridges/python_call.h"
#include "record/thread.h"

static OPSCOPE__THREAD_LOCAL struct {
    const void *at; /* NULL: this thread verifies nothing */
    bool arrived;
} probe;

void opscope__python_probe_begin(const void *at)
{
    probe.at = at;
    probe.arrived = false;
    opscope__hot_invalidate(); /* else the countdown would skip the range */
}

bool opscope__python_probe_end(void)
{
    probe.at = NULL;
    return probe.arrived;
}

bool opscope__python_probe_arrives(const void *at)
{
    const bool arrives = probe.at == at && at != NULL;
    probe.arrived |= arrives;
    return arrives;
}
