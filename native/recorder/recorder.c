/* record/recorder.c -- the recorder's hot path: what it does at the start and the end of a range.
 * Its life cycle (start, stop, settings, forks) is in record/recorder_life.c.
 *
 * Nothing here locks, allocates, logs or enters the kernel, but for the first range of a thread, of
 * an operator and label set, and of an octave.
 */
#include "record/recorder_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/hot.h"
#include "record/control.h"
#include "record/debug_info.h"
#include "record/exemplar.h"
#include "record/histogram.h"
#include "record/names.h"
#include "record/range.h"

struct opscope__recorder opscope__recorder;

_Static_assert(offsetof(opscope_op, phase) == offsetof(opscope_op, id) + 4 &&
                   sizeof(opscope_op) >= offsetof(opscope_op, id) + 8 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "op_and_phase reads both at once");

/* Only the owner of a cell writes it, and only other processes read it meanwhile. A plain add, so
 * that it is one instruction; a reader sees the old or the new value, as an aligned store of eight
 * bytes is not divided on the processors we know. */
static inline void add(uint64_t *counter, uint64_t amount)
{
    *counter += amount;
}

static inline uint64_t weighted(uint64_t ticks, uint64_t weight)
{
    return (uint64_t)((unsigned __int128)ticks * weight >> OPSCOPE_SEGMENT_WEIGHT_LOG2);
}

/* ---- start --------------------------------------------------------------------------------- */

static uint64_t find_label_set(const opscope_debug_info *chain)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    uint32_t id =
        recorder->segment.base != NULL ? opscope__names_label_set(&recorder->segment, chain) : 0;
    uint64_t found = (uint64_t)recorder->label_epoch << 32 | id;
    opscope__segment_unlock();
    /* Partner: the load in opscope__recorder_labels_changed; any thread would store the same. */
    opscope__store_relaxed(&((struct opscope__debug_info_node *)(uintptr_t)chain)->label_set,
                           found);
    return found;
}

void opscope__recorder_labels_changed(const struct opscope__thread *thread)
{
    const opscope_debug_info *chain = thread->debug_info;
    const uint32_t epoch = opscope__load_relaxed(&opscope__recorder.label_epoch);
    uint64_t found = 0;
    if (chain != NULL) {
        found = opscope__load_relaxed(&((const struct opscope__debug_info_node *)chain)->label_set);
        if (found >> 32 != epoch) {
            found = find_label_set(chain);
        }
    }
    opscope__hot.label_bits = (found & UINT32_MAX) << 40;
    if (thread->recorder != NULL) {
        thread->recorder->label_epoch = epoch;
    }
}

void opscope__recorder_labels_follow(const struct opscope__thread *thread)
{
    const struct opscope__recorder_thread *state = thread->recorder;
    if (state != NULL &&
        state->label_epoch != opscope__load_relaxed(&opscope__recorder.label_epoch)) {
        opscope__recorder_labels_changed(thread);
    }
}

static inline bool is_full(const struct opscope__recorder_thread *state)
{
    return state->top == &state->frames[1 + OPSCOPE__FRAME_LIMIT];
}

static inline bool is_async(const opscope_range *fn)
{
    return fn->info != NULL && __builtin_expect(fn->info->is_async, 0);
}

/* Operator and phase, as in a cell's key. A weak phase gives way to a strong one around it. */
static inline uint64_t op_and_phase(const opscope_op *op, const struct opscope__frame *frame)
{
    const uint64_t first_strong = (uint64_t)OPSCOPE_BACKWARD << 32;
    const uint64_t enclosing = frame[-1].key & (uint64_t)0xff << 32;
    uint64_t own;
    memcpy(&own, &op->id, sizeof own); /* id, phase, then what is cut off: one load */
    own &= (uint64_t)0xff << 32 | UINT32_MAX;
    if (__builtin_expect(own < first_strong && enclosing >= first_strong, 0)) {
        return op->id | enclosing;
    }
    return own;
}

static inline void begin(struct opscope__frame *frame, uint64_t key, const opscope_range *fn,
                         uint64_t weight, void **context)
{
    frame->key = key | opscope__hot.label_bits;
    frame->range = fn;
    frame->weight = weight;
    frame->serial = opscope__load_relaxed(&opscope__recorder.serial);
    frame->child_ticks = 0;
    *context = frame;
}

/* Everything but the common case: a thread's first range in a segment, async ranges, more nesting
 * than there are frames. */
static int OPSCOPE__SELDOM start_seldom(const opscope_range *fn, void **context)
{
    struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread->recorder;
    if (state == NULL || state->epoch != opscope__load_relaxed(&opscope__recorder.segment.epoch)) {
        state = opscope__recorder_thread_open(thread);
    }
    uint64_t weight = opscope__load_relaxed(&opscope__recorder.weight);
    if (state == NULL || weight == 0) {
        return OPSCOPE_OK; /* no room; or between windows */
    }
    struct opscope__frame *frame = NULL;
    if (is_async(fn)) {
        frame = malloc(sizeof *frame); /* it may end on another thread */
    } else if (!is_full(state)) {
        frame = state->top++;
    }
    if (frame == NULL) {
        opscope__recorder_drop(state);
        return OPSCOPE_OK;
    }
    begin(frame, op_and_phase(fn->op, is_async(fn) ? state->top : frame), fn, weight, context);
    frame->epoch = state->epoch;
    frame->start_ticks = opscope__ticks();
    return OPSCOPE_OK;
}

int OPSCOPE__HOT opscope__recorder_range_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    const struct opscope__recorder *recorder = &opscope__recorder;
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    uint64_t weight = opscope__load_relaxed(&recorder->weight);
    if (__builtin_expect(state == NULL ||
                             state->epoch != opscope__load_relaxed(&recorder->segment.epoch) ||
                             weight == 0 || is_async(fn) || is_full(state),
                         0)) {
        return start_seldom(fn, context);
    }
    struct opscope__frame *frame = state->top++;
    begin(frame, op_and_phase(fn->op, frame), fn, weight, context);
    frame->start_ticks = opscope__ticks();
    return OPSCOPE_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

typedef uint64_t two_weights __attribute__((vector_size(16), may_alias));
typedef uint64_t two_weights_anywhere __attribute__((vector_size(16), may_alias, aligned(8)));

/* Adds to one of the line's buckets by adding to all of them, to all but one of them nothing. That
 * way the addresses of the stores do not hang on the counter just read: on some processors reading
 * the counter again waits for the addresses of earlier stores, and a range that starts right after
 * this one would wait for the whole computation of the bucket. */
static inline void add_to_line(opscope_line *line, uint32_t bucket, uint64_t weight)
{
    static const uint64_t window[15] = {[7] = UINT64_MAX};
    const two_weights both = {weight, weight};
    two_weights *weights = (two_weights *)(void *)line->weight;
    const two_weights_anywhere *masks =
        (const two_weights_anywhere *)(const void *)&window[7 - bucket];
    weights[0] += both & masks[0];
    weights[1] += both & masks[1];
    weights[2] += both & masks[2];
    weights[3] += both & masks[3];
}

static inline void add_to(opscope_cell *cell, opscope_line *line, uint32_t bucket,
                          const struct opscope__frame *frame, uint64_t ticks)
{
    /* All loads first: for all the compiler knows, a cell might be part of the frame. */
    const uint64_t weight = frame->weight;
    const uint64_t child_ticks = frame->child_ticks;
    const bool is_whole = frame->serial == opscope__load_relaxed(&opscope__recorder.whole_serial);
    uint64_t self_ticks = ticks > child_ticks ? ticks - child_ticks : 0;
    uint64_t total = ticks;
    if (__builtin_expect(weight != OPSCOPE__WEIGHT_ONE, 0)) {
        total = weighted(ticks, weight);
        self_ticks = weighted(self_ticks, weight);
    }
    add(&cell->sample_count, 1);
    add(&cell->weight, weight);
    add(&cell->total_ticks, total);
    add_to_line(line, bucket, weight);
    if (is_whole) {
        add(&cell->whole_ticks, total);
        add(&cell->self_ticks, self_ticks);
    }
}

static inline void find_bucket(uint64_t ticks, uint32_t *octave, uint32_t *bucket)
{
    uint64_t units = (uint64_t)((unsigned __int128)ticks *
                                    opscope__load_relaxed(&opscope__recorder.units_per_tick) >>
                                32);
    opscope__bucket_of(units, octave, bucket);
}

/* Everything but the common case: the first range of a key, another octave than the last one, a
 * full table, a range that failed. Where no line can be had, the table's `other` cell has them all.
 */
static int __attribute__((noinline)) count_seldom(struct opscope__recorder_thread *state,
                                                  const struct opscope__frame *frame,
                                                  uint64_t ticks, bool failed)
{
    opscope__table *table = state->table;
    opscope__segment *segment = &opscope__recorder.segment;
    struct opscope__slot *slot = opscope__table_find(table, frame->key);
    if (slot == NULL) {
        slot = opscope__table_add(table, segment, frame->key);
    }
    uint32_t octave, bucket;
    find_bucket(ticks, &octave, &bucket);
    opscope_cell *cell = slot != NULL ? slot->cell : &opscope__no_room;
    opscope_line *line = NULL;
    if (cell != &opscope__no_room) {
        line = opscope__table_line(table, cell, octave);
        line = line != NULL ? line : opscope__table_add_line(table, segment, cell, octave);
    }
    if (line != NULL) {
        slot->last_line = line;
        slot->last_octave = octave;
    } else {
        cell = table->other;
        line = opscope__table_line(table, cell, octave);
        if (line == NULL) {
            return OPSCOPE_OK; /* the segment was closed meanwhile */
        }
        opscope__add_relaxed(&state->header->folded_count, 1);
    }
    add_to(cell, line, bucket, frame, ticks);
    if (failed) {
        add(&cell->error_weight, frame->weight);
    }
    /* The labels of an async range are not those of whichever thread ends it. */
    const opscope_debug_info *labels = opscope__hot.thread->debug_info;
    if (__builtin_expect(labels != NULL && frame->serial != UINT64_MAX, 0)) {
        opscope__exemplar_consider(table, segment, cell, octave, ticks, labels);
    }
    return OPSCOPE_OK;
}

/* The counter of another processor may be a little behind. */
static uint64_t ticks_since(const struct opscope__frame *frame, uint64_t now)
{
    return now > frame->start_ticks ? now - frame->start_ticks : 0;
}

/* Everything but the common case: a range that was not recorded at its start, is async, or belongs
 * to another thread, process or segment than this. */
static int end_any(const opscope_range *fn, struct opscope__frame *frame, uint64_t now)
{
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (frame == NULL) {
        return OPSCOPE_OK;
    }
    bool is_here = state != NULL && state->epoch != 0 &&
                   state->epoch == opscope__load_relaxed(&opscope__recorder.segment.epoch);
    if (is_async(fn)) {
        const bool is_now = frame->epoch == opscope__load_relaxed(&opscope__recorder.segment.epoch);
        if (is_now && !is_here) {
            state =
                opscope__recorder_thread_open(opscope__hot.thread); /* its first range ends here */
        }
        if (is_now && state != NULL) {
            frame->serial = UINT64_MAX; /* what runs meanwhile on its thread is not within it */
            (void)count_seldom(state, frame, ticks_since(frame, now),
                               (fn->failed & OPSCOPE__FAILED) != 0);
        }
        free(frame);
        return OPSCOPE_OK;
    }
    if (!is_here || frame < &state->frames[1] || frame >= state->top || frame->range != fn) {
        return OPSCOPE_OK; /* unwound already, when a range around it ended first */
    }
    for (const struct opscope__frame *within = frame + 1; within < state->top; within++) {
        frame->child_ticks += within->child_ticks;
    }
    opscope__recorder_unwind(state, frame + 1);
    if ((fn->failed & OPSCOPE__LOST) != 0) {
        frame[-1].child_ticks += frame->child_ticks; /* as if it had not been */
        opscope__recorder_unwind(state, frame);
        return OPSCOPE_OK;
    }
    state->top = frame;
    uint64_t ticks = ticks_since(frame, now);
    frame[-1].child_ticks += ticks;
    return count_seldom(state, frame, ticks, (fn->failed & OPSCOPE__FAILED) != 0);
}

/* The same, and where it is time, a look at the control block, after which all may be different. */
static int OPSCOPE__SELDOM end_seldom(const opscope_range *fn, struct opscope__frame *frame,
                                      uint64_t now)
{
    (void)end_any(fn, frame, now);
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (state != NULL && now >= state->look_ticks) {
        state->look_ticks = UINT64_MAX; /* not from within the look */
        state->look_ticks = opscope__control_poll(state->header, now);
    }
    return OPSCOPE_OK;
}

int OPSCOPE__HOT opscope__recorder_range_end(const opscope_range *fn, void *user, void *context)
{
    uint64_t now = opscope__ticks();
    (void)user;
    struct opscope__frame *frame = context;
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    /* The common case: the innermost frame of this thread, so not an async one; not failed. Should
     * its segment have been closed meanwhile, its table lies in private memory by now: counting
     * there harms nobody. */
    if (__builtin_expect(state == NULL || frame != state->top - 1 || frame->range != fn ||
                             fn->failed != 0 || now >= state->look_ticks,
                         0)) {
        return end_seldom(fn, frame, now);
    }
    uint64_t ticks = now - frame->start_ticks;
    if (__builtin_expect((int64_t)ticks < 0, 0)) {
        return end_seldom(fn, frame, now);
    }
    state->top = frame;
    frame[-1].child_ticks += ticks;
    struct opscope__slot *slot = opscope__table_find(state->table, frame->key);
    uint32_t octave, bucket;
    find_bucket(ticks, &octave, &bucket);
    if (__builtin_expect(slot == NULL || slot->last_octave != octave, 0)) {
        return count_seldom(state, frame, ticks, false);
    }
    add_to(slot->cell, slot->last_line, bucket, frame, ticks);
    return OPSCOPE_OK;
}
