/* record/demand.c -- tells the one listener when what the callbacks want may have changed. What they
 * want is read from the registry in record/callback.c. */
#include "record/demand.h"

#include <stddef.h>

#include "base/atomics.h"

/* Written once, by release; load_acquire by whoever calls it. */
static const struct opscope__demand_listener *listener;
/* The listener that was told of the fork under way. Settings lock. */
static const struct opscope__demand_listener *told;

void opscope__demand_listen(const struct opscope__demand_listener *new_listener)
{
    opscope__store_release(&listener, new_listener);
}

void opscope__demand_changed(void)
{
    const struct opscope__demand_listener *known = opscope__load_acquire(&listener);
    if (known != NULL) {
        known->changed();
    }
}

void opscope__demand_thread_ends(void)
{
    const struct opscope__demand_listener *known = opscope__load_acquire(&listener);
    if (known != NULL) {
        known->thread_ends();
    }
}

void opscope__demand_fork_prepare(void)
{
    told = opscope__load_acquire(&listener);
    if (told != NULL) {
        told->fork_prepare();
    }
}

void opscope__demand_fork_done(void)
{
    if (told != NULL) {
        told->fork_done();
    }
    told = NULL;
}
