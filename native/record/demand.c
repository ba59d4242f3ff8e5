/* record/demand.c -- tells the listeners when what the callbacks want may have changed. What they
 * want is read from the registry in record/callback.c. */
#include "record/demand.h"

#include <stddef.h>

#include "base/atomics.h"

enum { LISTENER_LIMIT = 4 };

/* Each written once, by release, the first free one first; load_acquire by whoever calls it. */
static const struct opscope__demand_listener *listeners[LISTENER_LIMIT];
/* So many were told of the fork under way. Settings lock. */
static int told_count;

static const struct opscope__demand_listener *listener(int index)
{
    return index < LISTENER_LIMIT ? opscope__load_acquire(&listeners[index]) : NULL;
}

void opscope__demand_listen(const struct opscope__demand_listener *new_listener)
{
    for (int i = 0; i < LISTENER_LIMIT; i++) {
        const struct opscope__demand_listener *none = NULL;
        if (__atomic_compare_exchange_n(&listeners[i], &none, new_listener, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED) ||
            none == new_listener) {
            return;
        }
    }
}

void opscope__demand_changed(void)
{
    const struct opscope__demand_listener *known;
    for (int i = 0; (known = listener(i)) != NULL; i++) {
        known->changed();
    }
}

void opscope__demand_thread_ends(void)
{
    const struct opscope__demand_listener *known;
    for (int i = 0; (known = listener(i)) != NULL; i++) {
        if (known->thread_ends != NULL) {
            known->thread_ends();
        }
    }
}

void opscope__demand_fork_prepare(void)
{
    const struct opscope__demand_listener *known;
    for (told_count = 0; (known = listener(told_count)) != NULL; told_count++) {
        known->fork_prepare();
    }
}

void opscope__demand_fork_done(void)
{
    while (told_count > 0) {
        listener(--told_count)->fork_done();
    }
}
