/* record/snapshot_life.c -- the lifetime of a thread's snapshot: rebuilt when callbacks change,
 * kept while ranges use it, released when the thread ends. */
#include "record/callback.h"

#include <stddef.h>

#include "base/atomics.h"
#include "base/fence.h"
#include "record/demand.h"
#include "record/observer.h"

static void set_skips(uint64_t skip)
{
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        opscope__hot.skip[scope] = skip;
    }
}

/* With the lock held: frees a snapshot without open ranges; puts any other one on `list`. */
static void retire(struct opscope__snapshot *snapshot, struct opscope__snapshot **list,
                   struct opscope__callback **dead)
{
    if (snapshot == NULL) {
        return;
    }
    if (opscope__snapshot_open_total(snapshot) == 0) {
        opscope__snapshot_destroy(snapshot, dead);
        return;
    }
    snapshot->next_stale = *list;
    *list = snapshot;
}

static void sweep(struct opscope__snapshot **list, struct opscope__callback **dead)
{
    struct opscope__snapshot **link = list;
    while (*link != NULL) {
        struct opscope__snapshot *snapshot = *link;
        if (opscope__snapshot_open_total(snapshot) == 0) {
            *link = snapshot->next_stale;
            opscope__snapshot_destroy(snapshot, dead);
        } else {
            link = &snapshot->next_stale;
        }
    }
}

void opscope__snapshots_sweep(struct opscope__thread *thread)
{
    struct opscope__callback *dead = NULL;
    opscope__registry_lock();
    if (thread != NULL) {
        sweep(&thread->stale, &dead);
    }
    sweep(&opscope__orphans, &dead);
    opscope__registry_unlock();
    opscope__callbacks_drop(dead);
}

/* Whether no callback fires in that scope. */
static bool is_free(const struct opscope__scope_slot *slot)
{
    return (slot->always | slot->sampled) == 0;
}

struct opscope__thread *opscope__thread_refresh(void)
{
    struct opscope__thread *thread = opscope__thread_self();
    struct opscope__callback *dead = NULL;
    opscope__registry_lock();
    if (thread != NULL) {
        opscope__thread_keep_passed(thread);
    }
    opscope__hot.version = opscope__version;
    opscope__hot.solo = NULL;
    set_skips(UINT64_MAX);
    if (thread == NULL) {
        opscope__registry_unlock();
        return NULL;
    }
    bool empty = false;
    struct opscope__snapshot *snapshot = opscope__snapshot_create(thread, &empty);
    retire(thread->snapshot, &thread->stale, &dead);
    sweep(&thread->stale, &dead);
    thread->snapshot = snapshot;
    if (snapshot != NULL) {
        for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
            opscope__hot.skip[scope] = snapshot->scope_slots[scope].armed;
        }
        opscope__hot.solo = opscope__fence_is_symmetric ? NULL : snapshot;
    }
    thread->armed = snapshot == NULL || is_free(&snapshot->scope_slots[OPSCOPE_FUNCTION])
                        ? opscope__hot.skip[OPSCOPE_FUNCTION]
                        : 0;
    opscope__registry_unlock();
    opscope__callbacks_drop(dead);
    opscope__observers_thread_refreshed(thread);
    return thread;
}

bool opscope_has_callbacks(void)
{
    const struct opscope__hot *hot = &opscope__hot;
    if (hot->version != opscope__load_relaxed(&opscope__version)) {
        (void)opscope__thread_refresh();
    }
    return hot->thread != NULL && hot->thread->snapshot != NULL;
}

bool opscope_has_callbacks_of(opscope_scope scope)
{
    if (!opscope_has_callbacks() || (unsigned)scope >= OPSCOPE_SCOPE_COUNT) {
        return false;
    }
    const struct opscope__scope_slot *slot = &opscope__hot.thread->snapshot->scope_slots[scope];
    return !is_free(slot) || slot->armed != UINT64_MAX; /* the latter: they are only counted */
}

/* ---- beginning and end of threads and processes --------------------------------------------------- */

/* Releases the thread's state. Its open async ranges keep their snapshots. This is the last step on
 * a thread: a range that a drop function opens belongs to a new thread state. */
static void end_thread(struct opscope__thread *thread)
{
    struct opscope__callback *dead = NULL;
    opscope__registry_lock();
    opscope__thread_keep_passed(thread);
    opscope__hot = (struct opscope__hot){0};
    const bool had_local = thread->local != NULL;
    struct opscope__snapshot *stale = thread->stale;
    while (stale != NULL) {
        struct opscope__snapshot *next = stale->next_stale;
        opscope__store_relaxed(&stale->owner, NULL);
        retire(stale, &opscope__orphans, &dead);
        stale = next;
    }
    if (thread->snapshot != NULL) {
        opscope__store_relaxed(&thread->snapshot->owner, NULL);
        retire(thread->snapshot, &opscope__orphans, &dead);
    }
    if (thread->local != NULL) {
        opscope__callback_list_release(thread->local, &dead);
    }
    /* The thread is still in the registry, where removers read its snapshots. */
    thread->snapshot = thread->stale = NULL;
    thread->local = NULL;
    opscope__registry_unlock();
    if (had_local) {
        opscope__demand_changed();
    }
    opscope__callbacks_drop(dead);
}

static void fork_child(void)
{
    opscope__orphans = NULL; /* leaked, like the threads that it outlived */
}

static const struct opscope__observer observer = {.thread_ends = end_thread,
                                                  .fork_child = fork_child};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_CALLBACKS, &observer);
}
