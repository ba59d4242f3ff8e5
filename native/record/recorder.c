/* record/recorder.c -- the recorder's hot path: what it does at the start and the end of a range.
 * Its life cycle (start, stop, settings, forks) is in record/recorder_life.c.
 *
 * Nothing here locks, allocates, logs or enters the kernel, but for the first range of a thread, of
 * an operator and label set, and of an octave.
 */
#include "record/recorder_state.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "record/debug_info.h"
#include "record/histogram.h"
#include "record/names.h"

struct opscope__recorder opscope__recorder;

/* Only the owner of a cell writes it; partner: the reader of the file. */
static inline void add(uint64_t *counter, uint64_t amount)
{
    opscope__store_relaxed(counter, *counter + amount);
}

static inline uint64_t weighted(uint64_t ticks, uint64_t weight)
{
    if (__builtin_expect(weight == OPSCOPE__WEIGHT_ONE, 1)) {
        return ticks;
    }
    return (uint64_t)((unsigned __int128)ticks * weight >> OPSCOPE_SEGMENT_WEIGHT_LOG2);
}

/* ---- start --------------------------------------------------------------------------------- */

static uint32_t find_label_set(const opscope_debug_info *chain)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    uint32_t id =
        recorder->segment.base != NULL ? opscope__names_label_set(&recorder->segment, chain) : 0;
    uint64_t found = (uint64_t)recorder->segment.epoch << 32 | id;
    opscope__segment_unlock();
    /* Partner: the load in label_set_of; any thread would store the same. */
    opscope__store_relaxed(&((struct opscope__debug_info_node *)(uintptr_t)chain)->label_set, found);
    return id;
}

static inline uint32_t label_set_of(const opscope_debug_info *chain, uint32_t epoch)
{
    if (__builtin_expect(chain == NULL, 1)) {
        return 0;
    }
    uint64_t found =
        opscope__load_relaxed(&((const struct opscope__debug_info_node *)chain)->label_set);
    return __builtin_expect(found >> 32 == epoch, 1) ? (uint32_t)found : find_label_set(chain);
}

/* A weak phase gives way to a strong one around it. */
static inline uint32_t phase_of(const opscope_op *op, const struct opscope__recorder_thread *state)
{
    if (op->phase >= OPSCOPE_BACKWARD || state->depth == 0) {
        return op->phase;
    }
    uint32_t enclosing = (uint32_t)(state->frames[state->depth - 1].key >> 32 & 0xff);
    return enclosing >= OPSCOPE_BACKWARD ? enclosing : op->phase;
}

/* NULL where this range is not to be recorded. */
static struct opscope__frame *new_frame(struct opscope__recorder_thread *state,
                                        const opscope_range *fn)
{
    if (__builtin_expect(fn->info != NULL && fn->info->is_async, 0)) {
        return malloc(sizeof(struct opscope__frame)); /* it may end on another thread */
    }
    if (__builtin_expect(state->depth == OPSCOPE__FRAME_LIMIT, 0)) {
        return NULL;
    }
    return &state->frames[state->depth];
}

int opscope__recorder_range_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    struct opscope__recorder *recorder = &opscope__recorder;
    struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread->recorder;
    uint64_t weight = opscope__load_relaxed(&recorder->weight);
    if (__builtin_expect(state == NULL ||
                             state->epoch != opscope__load_relaxed(&recorder->segment.epoch), 0)) {
        state = opscope__recorder_thread_open(thread);
        weight = opscope__load_relaxed(&recorder->weight);
    }
    if (__builtin_expect(weight == 0 || state == NULL, 0)) {
        return OPSCOPE_OK; /* between windows; or no memory for this thread */
    }
    struct opscope__frame *frame = state->table != NULL ? new_frame(state, fn) : NULL;
    if (__builtin_expect(frame == NULL, 0)) {
        opscope__recorder_drop(state);
        return OPSCOPE_OK;
    }
    frame->key = fn->op->id | (uint64_t)phase_of(fn->op, state) << 32 |
                 (uint64_t)label_set_of(thread->debug_info, state->epoch) << 40;
    frame->range = fn;
    frame->weight = weight;
    frame->serial = opscope__load_relaxed(&recorder->serial);
    frame->epoch = state->epoch;
    frame->child_ticks = 0;
    state->depth += frame == &state->frames[state->depth];
    *context = frame;
    frame->start_ticks = opscope__ticks();
    return OPSCOPE_OK;
}

/* ---- end ----------------------------------------------------------------------------------- */

/* The line to count in. Where none can be had, *cell becomes the table's `other`, which has all. */
static opscope_line *line_for(struct opscope__recorder_thread *state, opscope_cell **cell,
                              uint32_t octave)
{
    opscope__table *table = state->table;
    opscope_line *line = opscope__table_line(table, *cell, octave);
    if (__builtin_expect(line == NULL, 0)) {
        line = opscope__table_add_line(table, &opscope__recorder.segment, *cell, octave);
        if (line == NULL) {
            *cell = table->other;
            line = opscope__table_line(table, *cell, octave);
        }
    }
    return line;
}

static void count(struct opscope__recorder_thread *state, const struct opscope__frame *frame,
                  uint64_t ticks, bool self_is_known, bool failed)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope_cell *cell = opscope__table_find(state->table, frame->key);
    if (__builtin_expect(cell == NULL, 0)) {
        cell = opscope__table_add(state->table, &recorder->segment, frame->key);
    }
    uint64_t units = (uint64_t)((unsigned __int128)ticks * recorder->units_per_tick >> 32);
    uint32_t octave, bucket;
    opscope__bucket_of(units, &octave, &bucket);
    opscope_line *line = line_for(state, &cell, octave);
    if (__builtin_expect(cell == state->table->other && (uint32_t)frame->key != OTHER_OP_ID, 0)) {
        opscope__add_relaxed(&state->header->folded_count, 1);
    }
    add(&cell->sample_count, 1);
    add(&cell->weight, frame->weight);
    add(&cell->total_ticks, weighted(ticks, frame->weight));
    add(&line->weight[bucket], frame->weight);
    if (self_is_known) {
        uint64_t self = ticks > frame->child_ticks ? ticks - frame->child_ticks : 0;
        add(&cell->self_weight, frame->weight);
        add(&cell->self_ticks, weighted(self, frame->weight));
    }
    if (__builtin_expect(failed, 0)) {
        add(&cell->error_weight, frame->weight);
    }
}

static void end_async(struct opscope__recorder_thread *state, struct opscope__frame *frame,
                      uint64_t now, bool failed)
{
    if (state != NULL && state->table != NULL && state->epoch == frame->epoch) {
        count(state, frame, now - frame->start_ticks, false, failed);
    }
    free(frame);
}

int opscope__recorder_range_end(const opscope_range *fn, void *user, void *context)
{
    uint64_t now = opscope__ticks();
    (void)user;
    struct opscope__frame *frame = context;
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (__builtin_expect(frame == NULL, 0)) {
        return OPSCOPE_OK;
    }
    if (__builtin_expect(fn->info != NULL && fn->info->is_async, 0)) {
        end_async(state, frame, now, fn->failed != 0);
        return OPSCOPE_OK;
    }
    uint32_t epoch = opscope__load_relaxed(&opscope__recorder.segment.epoch);
    uint64_t index = state != NULL ? (uint64_t)(frame - state->frames) : UINT64_MAX;
    /* A range from before a fork or a restart; or unwound already, when one around it ended first. */
    if (__builtin_expect(index >= OPSCOPE__FRAME_LIMIT || index >= state->depth ||
                             frame->epoch != epoch || frame->range != fn, 0)) {
        return OPSCOPE_OK;
    }
    state->depth = (uint32_t)index;
    uint64_t ticks = now - frame->start_ticks;
    if (index > 0) {
        state->frames[index - 1].child_ticks += ticks;
    }
    bool self_is_known =
        frame->serial != 0 && frame->serial == opscope__load_relaxed(&opscope__recorder.serial);
    count(state, frame, ticks, self_is_known, fn->failed != 0);
    return OPSCOPE_OK;
}
