/* recorder/outer.c -- see recorder/outer.h. */
#include "recorder/outer.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "base/fetch.h"
#include "record/callback.h"
#include "record/range.h"
#include "recorder/count.h"
#include "recorder/outer_variance.h"

/* True if the recorder's is the only callback that may want outer ranges; known anew after each
 * change of the callbacks. */
static bool is_alone(struct opscope__recorder_thread *state)
{
    const struct opscope__hot *hot = &opscope__hot;
    const uint64_t version = opscope__load_relaxed(&opscope__version);
    if (__builtin_expect(hot->version != version || hot->running != NULL, 0)) {
        return false; /* the record layer will refresh the thread's snapshot */
    }
    if (__builtin_expect(state->outer_version != version, 0)) {
        const struct opscope__snapshot *snapshot = hot->solo;
        const struct opscope__callback *solo =
            snapshot != NULL ? snapshot->scope_slots[OPSCOPE_USER_SCOPE].solo : NULL;
        if (solo == NULL || solo->leaf == NULL || !solo->leaf->is_outer) {
            return false;
        }
        state->outer_version = version;
    }
    return true;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void add_frame(struct opscope__recorder_thread *state, struct opscope__outer_range *outer)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    outer->is_unframed = false;
    outer->frame = NULL;
    if (outer->epoch != state->epoch) {
        return; /* its segment is closed */
    }
    if (state->top == &state->frames[1 + OPSCOPE__FRAME_LIMIT]) {
        opscope__recorder_drop(state);
        return;
    }
    outer->range->info = NULL;
    outer->frame = state->top++;
    *outer->frame =
        (struct opscope__frame){.range = outer->range,
                                .key = outer->key,
                                .weight = OPSCOPE__WEIGHT_ONE,
                                .serial = OPSCOPE__OUTER,
                                .start_ticks = outer->start_ticks,
                                .child_ticks = outer->child_ticks,
                                .exact_ticks = outer->child_ticks,
                                .epoch = (uint32_t)opscope__load_relaxed(&recorder->serial)};
}

/* The outermost first. */
static void add_frames(struct opscope__recorder_thread *state)
{
    while (state->unframed != NULL) {
        struct opscope__outer_range **link = &state->unframed;
        while ((*link)->around != NULL) {
            link = &(*link)->around;
        }
        struct opscope__outer_range *outermost = *link;
        *link = NULL;
        add_frame(state, outermost);
    }
}

void OPSCOPE__COLD opscope__outer_refresh(const struct opscope__thread *thread)
{
    if (thread->recorder != NULL) {
        /* A thread's own switch and callbacks change without a new version. */
        thread->recorder->outer_version = 0;
        add_frames(thread->recorder);
    }
}

/* ---- as a bridge reports them ------------------------------------------------------------------ */

bool OPSCOPE__HOT opscope__outer_begin(struct opscope__outer_range *outer, opscope_range *range,
                                       const opscope_op *op, uint64_t start_ticks)
{
    const struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread != NULL ? thread->recorder : NULL;
    const struct opscope__recorder *recorder = &opscope__recorder;
    if (__builtin_expect(state == NULL || !is_alone(state) ||
                             state->epoch != opscope__load_relaxed(&recorder->segment.epoch) ||
                             opscope__load_relaxed(&recorder->awaits_range) != 0,
                         0)) {
        return false;
    }
    struct opscope__outer_range *around = state->unframed;
    const uint64_t key_around = around != NULL ? around->key : state->top[-1].key;
    *outer = (struct opscope__outer_range){
        .key = opscope__count_key(op, key_around) | opscope__hot.label_bits,
        .start_ticks = start_ticks,
        .around = around,
        .range = range,
        .epoch = state->epoch,
        .is_unframed = true};
    state->unframed = outer;
    if (__builtin_expect(opscope__load_relaxed(&recorder->is_open) != 0, 0)) {
        add_frames(state);
    }
    return true;
}

/* Bytes of the functions' code. */
enum { BEGIN_BYTES = 384, END_BYTES = 320, COUNT_BYTES = 512 };

/* What both a begin and an end use. */
static inline void fetch_state(const struct opscope__recorder_thread *state)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    opscope__fetch(state, offsetof(struct opscope__recorder_thread, frames));
    opscope__fetch(&recorder->is_open, offsetof(struct opscope__recorder, free_tables));
}

void opscope__outer_will_begin(void)
{
    const struct opscope__thread *thread = opscope__hot.thread;
    if (thread != NULL && thread->recorder != NULL) {
        fetch_state(thread->recorder);
        opscope__fetch(&opscope__version, sizeof opscope__version);
        OPSCOPE__FETCH_CODE(opscope__outer_begin, BEGIN_BYTES);
    }
}

void opscope__outer_will_end(const struct opscope__outer_range *outer)
{
    const struct opscope__thread *thread = opscope__hot.thread;
    const struct opscope__recorder_thread *state = thread != NULL ? thread->recorder : NULL;
    if (state == NULL || outer->epoch != state->epoch) {
        return;
    }
    fetch_state(state);
    OPSCOPE__FETCH_CODE(opscope__outer_end, END_BYTES);
    OPSCOPE__FETCH_CODE(opscope__count_outer, COUNT_BYTES);
    const struct opscope__slot *slot = opscope__table_find(state->table, outer->key);
    if (slot != NULL) {
        opscope__fetch(slot->cell, sizeof *slot->cell);
        opscope__fetch(slot->last_line, sizeof *slot->last_line);
    }
}

/* Takes the innermost one without a frame from the list. */
static inline void pop(struct opscope__recorder_thread *state)
{
    struct opscope__outer_range *outer = state->unframed;
    state->unframed = outer->around;
    outer->is_unframed = false;
    outer->frame = NULL;
}

/* Takes it from the list, with what is inside and has not ended. */
static inline void leave(struct opscope__recorder_thread *state,
                         const struct opscope__outer_range *outer)
{
    while (__builtin_expect(state->unframed != outer, 0)) {
        pop(state);
        opscope__recorder_drop(state);
    }
    pop(state);
}

/* Adds the exact time of a range that has ended to the enclosing one. */
static inline void count_in_around(struct opscope__recorder_thread *state, uint64_t ticks)
{
    if (state->unframed != NULL) {
        state->unframed->child_ticks += ticks;
    } else {
        state->top[-1].child_ticks += ticks;
        state->top[-1].exact_ticks += ticks;
    }
}

static void OPSCOPE__COLD end_frame(const struct opscope__outer_range *outer, uint64_t failed)
{
    outer->range->failed = failed;
    (void)opscope__recorder_end_slow(outer->range, outer->frame, opscope__ticks());
}

void OPSCOPE__HOT opscope__outer_end(struct opscope__outer_range *outer, bool failed)
{
    if (__builtin_expect(!outer->is_unframed, 0)) {
        end_frame(outer, failed ? OPSCOPE__FAILED : 0);
        return;
    }
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    leave(state, outer);
    if (__builtin_expect(outer->epoch != state->epoch, 0)) {
        return; /* its segment is closed */
    }
    const uint64_t now = opscope__ticks();
    /* Another processor's counter may be slightly behind. */
    const uint64_t ticks = now > outer->start_ticks ? now - outer->start_ticks : 0;
    const struct opscope__frame frame = {.key = outer->key,
                                         .weight = OPSCOPE__WEIGHT_ONE,
                                         .serial = OPSCOPE__OUTER,
                                         .child_ticks = outer->child_ticks};
    count_in_around(state, ticks);
    if (outer->child_ticks != 0) {
        opscope__outer_inside_add(outer->key, outer->child_ticks, 0, 0);
    }
    (void)opscope__count_outer(state, &frame, ticks, failed);
    if (__builtin_expect(now >= state->next_poll_ticks, 0)) {
        end_frame(outer, 0); /* polls */
    }
}

void OPSCOPE__COLD opscope__outer_lose(struct opscope__outer_range *outer)
{
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (outer->is_unframed) {
        leave(state, outer);
        count_in_around(state, outer->child_ticks); /* as if it had not existed */
    } else if (opscope__recorder_lose(outer->range, outer->frame)) {
        end_frame(outer, OPSCOPE__LOST);
    }
}

/* ---- as the record layer reports them ----------------------------------------------------------- */

int opscope__recorder_outer_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    opscope__outer_refresh(opscope__hot.thread);
    return opscope__recorder_start_slow(fn, true, context);
}

int opscope__recorder_outer_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    return opscope__recorder_end_slow(fn, context, opscope__ticks());
}
