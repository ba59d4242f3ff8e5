/* record/demand.c -- notifies the listeners when the demand of the callbacks may have changed.
 * record/callback.c computes the demand from its registry. */
#include "record/demand.h"

#include <stddef.h>

#include "base/atomics.h"
#include "record/observer.h"

enum { LISTENER_LIMIT = 4 };

/* Each slot is written once, with release, in order; callers read with load_acquire. */
static const struct opscope__demand_listener *listeners[LISTENER_LIMIT];
/* How many listeners prepared for the fork in progress. Settings lock. */
static int told_count;

static const struct opscope__demand_listener *listener(int index)
{
    return index < LISTENER_LIMIT ? opscope__load_acquire(&listeners[index]) : NULL;
}

void opscope__demand_listen(const struct opscope__demand_listener *new_listener)
{
    for (int i = 0; i < LISTENER_LIMIT; i++) {
        const struct opscope__demand_listener *none = NULL;
        if (opscope__replace_release(&listeners[i], &none, new_listener) || none == new_listener) {
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

void opscope__demand_thread_recorded(void)
{
    const struct opscope__demand_listener *known;
    for (int i = 0; (known = listener(i)) != NULL; i++) {
        if (known->thread_recorded != NULL) {
            known->thread_recorded();
        }
    }
}

/* ---- threads and forks --------------------------------------------------------------------------- */

static void end_thread(struct opscope__thread *thread)
{
    (void)thread;
    const struct opscope__demand_listener *known;
    for (int i = 0; (known = listener(i)) != NULL; i++) {
        if (known->thread_ends != NULL) {
            known->thread_ends();
        }
    }
}

static void prepare_fork(void)
{
    const struct opscope__demand_listener *known;
    for (told_count = 0; (known = listener(told_count)) != NULL; told_count++) {
        known->fork_prepare();
    }
}

static void end_fork(void)
{
    while (told_count > 0) {
        listener(--told_count)->fork_done();
    }
}

static const struct opscope__observer observer = {
    .thread_ends = end_thread, .fork_prepare = prepare_fork, .fork_unlock = end_fork};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_BRIDGES, &observer);
}
