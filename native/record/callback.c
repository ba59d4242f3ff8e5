/* record/callback.c -- the registry of callbacks: add, remove, enable, disable, clear.
 * record/snapshot.c builds a thread's snapshot from it; record/range.c fires callbacks when a range
 * opens. */
#include "record/callback.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/fence.h"
#include "base/real_time.h"
#include "record/demand.h"
#include "record/observer.h"

enum { WAIT_STEP_NS = 50000 };

static struct opscope__callback *globals[OPSCOPE__CALLBACK_LIMIT]; /* registry lock */
static uint32_t global_count;                                      /* registry lock */
static opscope_handle last_handle;                                 /* registry lock */
struct opscope__snapshot *opscope__orphans;

/* ---- references --------------------------------------------------------------------------- */

void opscope__callback_release(struct opscope__callback *callback, struct opscope__callback **dead)
{
    if (--callback->reference_count == 0) {
        callback->next_dead = *dead;
        *dead = callback;
    }
}

void opscope__callbacks_drop(struct opscope__callback *dead)
{
    while (dead != NULL) {
        struct opscope__callback *next = dead->next_dead;
        if (dead->spec.drop != NULL) {
            dead->spec.drop(dead->spec.user);
        }
        free(dead);
        dead = next;
    }
}

void opscope__callback_list_release(struct opscope__callback_list *list,
                                    struct opscope__callback **dead)
{
    if (--list->reference_count == 0) {
        for (uint32_t i = 0; i < list->count; i++) {
            opscope__callback_release(list->items[i], dead);
        }
        free(list);
    }
}

/* A copy of `list` without the item at `omitted` (UINT32_MAX: with all items) and with `added` (may
 * be NULL) at its end. The copy has one reference. */
static struct opscope__callback_list *list_copy(const struct opscope__callback_list *list,
                                                uint32_t omitted, struct opscope__callback *added)
{
    uint32_t count = list != NULL ? list->count : 0;
    struct opscope__callback_list *copy =
        malloc(sizeof *copy + (count + 1) * sizeof copy->items[0]);
    if (copy == NULL) {
        return NULL;
    }
    copy->reference_count = 1;
    copy->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i != omitted) {
            list->items[i]->reference_count++;
            copy->items[copy->count++] = list->items[i];
        }
    }
    if (added != NULL) {
        added->reference_count++;
        copy->items[copy->count++] = added;
    }
    return copy;
}

uint32_t opscope__callbacks_enabled(const struct opscope__thread *thread,
                                    struct opscope__callback **out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < global_count; i++) {
        if (globals[i]->enabled &&
            (!thread->is_private ||
             (globals[i]->leaf != NULL && globals[i]->leaf->sees_private_threads))) {
            out[count++] = globals[i];
        }
    }
    uint32_t local_count = thread->local != NULL && !thread->is_private ? thread->local->count : 0;
    for (uint32_t i = 0; i < local_count && count < OPSCOPE__CALLBACK_LIMIT; i++) {
        if (thread->local->items[i]->enabled) {
            out[count++] = thread->local->items[i];
        }
    }
    return count;
}

static void add_demand(struct opscope__demand *demand, const struct opscope__callback *callback)
{
    const opscope_callback *spec = &callback->spec;
    if (!callback->enabled || spec->sampling_prob <= 0.0) {
        return;
    }
    if (callback->leaf != NULL && callback->leaf->is_outer) {
        demand->outer_scopes |= spec->scopes;
        return;
    }
    const bool is_first = demand->scopes == 0;
    demand->scopes |= spec->scopes != 0 ? spec->scopes : (1u << OPSCOPE_SCOPE_COUNT) - 1;
    demand->prob = is_first ? spec->sampling_prob : 1.0;
    demand->is_recorder = is_first && callback->leaf != NULL;
    demand->only_counts = demand->is_recorder && callback->leaf->only_counts;
    demand->needs_inputs |= spec->needs_inputs;
    demand->needs_outputs |= spec->needs_outputs;
}

void opscope__demand_read(struct opscope__demand *out)
{
    *out = (struct opscope__demand){0};
    opscope__registry_lock();
    for (uint32_t i = 0; i < global_count; i++) {
        add_demand(out, globals[i]);
    }
    for (const struct opscope__thread *t = opscope__registry_first(); t != NULL; t = t->next) {
        for (uint32_t i = 0; t->local != NULL && i < t->local->count; i++) {
            add_demand(out, t->local->items[i]);
        }
    }
    opscope__registry_unlock();
    if (out->is_recorder && out->prob < OPSCOPE__DRAWN_PROB_LEAST) {
        out->prob = OPSCOPE__DRAWN_PROB_LEAST;
    }
}

/* ---- the public registry ------------------------------------------------------------------ */

static int make(const opscope_callback *spec, struct opscope__callback **out)
{
    double prob = spec->sampling_prob;
    if (!(prob >= 0.0 && prob <= 1.0) || spec->scopes >> OPSCOPE_SCOPE_COUNT != 0) {
        return OPSCOPE_ERR_INVALID;
    }
    struct opscope__callback *callback = calloc(1, sizeof *callback);
    if (callback == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    callback->spec = *spec;
    callback->enabled = true;
    callback->reference_count = 1;
    *out = callback;
    return OPSCOPE_OK;
}

/* With the registry lock held: the largest number of local callbacks of any thread. */
static uint32_t most_local(void)
{
    uint32_t most = 0;
    for (const struct opscope__thread *t = opscope__registry_first(); t != NULL; t = t->next) {
        most = t->local != NULL && t->local->count > most ? t->local->count : most;
    }
    return most;
}

int opscope__add_global_leaf(const opscope_callback *spec, const struct opscope__leaf *leaf,
                             opscope_handle *out)
{
    struct opscope__callback *callback;
    int status = make(spec, &callback);
    if (status != OPSCOPE_OK) {
        return status;
    }
    callback->leaf = leaf;
    opscope__process_start();
    opscope__registry_lock();
    if (global_count + most_local() >= OPSCOPE__CALLBACK_LIMIT) {
        opscope__registry_unlock();
        free(callback);
        return OPSCOPE_ERR_FULL;
    }
    callback->handle = ++last_handle;
    opscope_handle handle = callback->handle;
    globals[global_count++] = callback;
    opscope__version_bump();
    opscope__registry_unlock();
    opscope__demand_changed();
    *out = handle;
    return OPSCOPE_OK;
}

int opscope_add_global_callback(const opscope_callback *spec, opscope_handle *out)
{
    return opscope__add_global_leaf(spec, NULL, out);
}

int opscope_add_thread_local_callback(const opscope_callback *spec, opscope_handle *out)
{
    struct opscope__thread *thread = opscope__thread_self();
    struct opscope__callback *callback;
    int status = thread != NULL ? make(spec, &callback) : OPSCOPE_ERR_NO_MEMORY;
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__callback *dead = NULL;
    struct opscope__callback_list *list = NULL;
    opscope__registry_lock();
    uint32_t local_count = thread->local != NULL ? thread->local->count : 0;
    if (global_count + local_count >= OPSCOPE__CALLBACK_LIMIT) {
        status = OPSCOPE_ERR_FULL;
    } else if ((list = list_copy(thread->local, UINT32_MAX, callback)) == NULL) {
        status = OPSCOPE_ERR_NO_MEMORY;
    }
    if (status == OPSCOPE_OK) {
        callback->handle = ++last_handle;
        *out = callback->handle;
        if (thread->local != NULL) {
            opscope__callback_list_release(thread->local, &dead);
        }
        thread->local = list;
        callback->reference_count--; /* the list owns it now */
    }
    opscope__registry_unlock();
    if (status != OPSCOPE_OK) {
        free(callback);
        return status;
    }
    opscope__callbacks_drop(dead);
    opscope__hot_invalidate();
    opscope__demand_changed();
    return OPSCOPE_OK;
}

/* The position of a handle in the registry. */
struct place {
    struct opscope__callback *callback;
    bool is_local;
    uint32_t index;
};

/* With the registry lock held: searches the thread's local list first, then the global one. */
static bool find(const struct opscope__thread *thread, opscope_handle handle, struct place *out)
{
    uint32_t local_count = thread != NULL && thread->local != NULL ? thread->local->count : 0;
    for (uint32_t i = 0; i < local_count; i++) {
        if (thread->local->items[i]->handle == handle) {
            *out = (struct place){thread->local->items[i], true, i};
            return true;
        }
    }
    for (uint32_t i = 0; i < global_count; i++) {
        if (globals[i]->handle == handle) {
            *out = (struct place){globals[i], false, i};
            return true;
        }
    }
    return false;
}

static uint64_t open_in(const struct opscope__snapshot *snapshot,
                        const struct opscope__callback *callback)
{
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->count; i++) {
        if (snapshot->callbacks[i] == callback) {
            return opscope__snapshot_open_total(snapshot);
        }
    }
    return 0;
}

/* With the registry lock held: the number of ranges open on `thread` that may use the callback. */
static uint64_t open_on(const struct opscope__thread *thread,
                        const struct opscope__callback *callback)
{
    uint64_t open = open_in(thread->snapshot, callback);
    for (const struct opscope__snapshot *stale = thread->stale; stale; stale = stale->next_stale) {
        open += open_in(stale, callback);
    }
    return open;
}

static uint64_t open_anywhere(const struct opscope__callback *callback)
{
    uint64_t open = 0;
    for (const struct opscope__thread *t = opscope__registry_first(); t != NULL; t = t->next) {
        open += open_on(t, callback);
    }
    for (const struct opscope__snapshot *f = opscope__orphans; f; f = f->next_stale) {
        open += open_in(f, callback);
    }
    return open;
}

/* The caller holds a reference to `callback`, which it has removed from all lists. */
static int wait_until_left(const struct opscope__thread *self,
                           const struct opscope__callback *callback)
{
    opscope__fence_heavy();
    for (;;) {
        opscope__registry_lock();
        bool own = self != NULL && open_on(self, callback) != 0;
        uint64_t open = open_anywhere(callback);
        opscope__registry_unlock();
        if (own) {
            return OPSCOPE_ERR_WOULD_DEADLOCK;
        }
        if (open == 0) {
            return OPSCOPE_OK;
        }
        opscope__sleep(WAIT_STEP_NS);
    }
}

int opscope_remove_callback(opscope_handle handle, bool wait)
{
    struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__callback *dead = NULL;
    struct opscope__callback_list *shorter = NULL;
    struct place place;
    int status = OPSCOPE_OK;
    opscope__process_start();
    opscope__registry_lock();
    if (!find(thread, handle, &place)) {
        status = OPSCOPE_ERR_NOT_FOUND;
    } else if (place.is_local) {
        shorter = list_copy(thread->local, place.index, NULL);
        status = shorter != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    }
    if (status != OPSCOPE_OK) {
        opscope__registry_unlock();
        return status;
    }
    place.callback->reference_count++; /* our reference, for the wait */
    if (place.is_local) {
        opscope__callback_list_release(thread->local, &dead);
        thread->local = shorter;
        opscope__hot_invalidate();
    } else {
        memmove(&globals[place.index], &globals[place.index + 1],
                (global_count - place.index - 1) * sizeof globals[0]);
        global_count--;
        opscope__callback_release(place.callback, &dead);
    }
    opscope__version_bump();
    opscope__registry_unlock();
    opscope__demand_changed();

    if (wait) {
        status = wait_until_left(thread, place.callback);
    }
    opscope__registry_lock();
    opscope__callback_release(place.callback, &dead);
    opscope__registry_unlock();
    opscope__callbacks_drop(dead);
    return status;
}

static int set_enabled(opscope_handle handle, bool enabled)
{
    struct place place;
    opscope__process_start();
    opscope__registry_lock();
    bool found = find(opscope__hot.thread, handle, &place);
    if (found && place.callback->enabled != enabled) {
        place.callback->enabled = enabled;
        opscope__version_bump();
    }
    opscope__registry_unlock();
    opscope__demand_changed();
    return found ? OPSCOPE_OK : OPSCOPE_ERR_NOT_FOUND;
}

int opscope_disable_callback(opscope_handle handle)
{
    return set_enabled(handle, false);
}

int opscope_enable_callback(opscope_handle handle)
{
    return set_enabled(handle, true);
}

void opscope_clear_callbacks(void)
{
    struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__callback *dead = NULL;
    opscope__process_start();
    opscope__registry_lock();
    while (global_count > 0) {
        opscope__callback_release(globals[--global_count], &dead);
    }
    if (thread != NULL && thread->local != NULL) {
        opscope__callback_list_release(thread->local, &dead);
        thread->local = NULL;
    }
    opscope__version_bump();
    opscope__registry_unlock();
    opscope__demand_changed();
    opscope__callbacks_drop(dead);
}
