/* python/metric.c -- metrics (opscope/metric.h) for Python, which keeps no C memory of its own in
 * place: these live as long as the process. A part of the cffi module's source, like outside.c.
 */
#include <stdlib.h>
#include <string.h>

#include "opscope/metric.h"

/* NULL without memory, or if name or label is empty or too long. */
static opscope_metric *opscope_py_metric(const char *name, const char *label, int kind)
{
    opscope_metric *made = calloc(1, sizeof *made);
    char *own_name = strdup(name), *own_label = strdup(label);
    if (made != NULL && own_name != NULL && own_label != NULL &&
        opscope_metric_register(made, own_name, own_label, (opscope_metric_kind)kind) ==
            OPSCOPE_OK) {
        return made;
    }
    free(made);
    free(own_name);
    free(own_label);
    return NULL;
}

static void opscope_py_metric_add(opscope_metric *metric, int64_t amount)
{
    (void)opscope_metric_add(metric, (uint64_t)amount);
}
