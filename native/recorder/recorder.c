/* recorder/recorder.c -- the recorder's hot path: the start and the end of a range. recorder/life.c
 * has its life cycle (start, stop, settings, forks).
 *
 * Nothing here locks, allocates, logs or enters the kernel, except for the first range of a thread,
 * of an operator and label set, and of an octave.
 */
#include "recorder/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/hot.h"
#include "opscope/debug_info.h"
#include "record/range.h"
#include "recorder/cost.h"
#include "recorder/exemplar.h"
#include "recorder/outer_variance.h"
#include "recorder/range_clock.h"
#include "recorder/recorder.h"
#include "segment/histogram.h"

/* Of an async range, which may end on another thread. */
struct async_frame {
    struct opscope__frame frame;      /* first: the range's context is its address */
    const opscope_debug_info *labels; /* at the start; holds a reference */
};

/* Serial of an async frame at its end: it equals no serial of the recorder or of an outer range. */
static const uint64_t NO_SERIAL = UINT64_MAX - 1;

_Static_assert(offsetof(opscope_op, phase) == offsetof(opscope_op, id) + 4 &&
                   sizeof(opscope_op) >= offsetof(opscope_op, id) + 8 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "op_and_phase reads both at once");

/* Only the owner of a cell writes it; meanwhile only other processes read it. A plain addition
 * compiles to one instruction. A reader sees the old or the new value, because the supported
 * processors do not split an aligned store of eight bytes. */
static inline void add(uint64_t *counter, uint64_t amount)
{
    *counter += amount;
}

static inline uint64_t weighted(uint64_t ticks, uint64_t weight)
{
    return (uint64_t)((unsigned __int128)ticks * weight >> OPSCOPE_SEGMENT_WEIGHT_LOG2);
}

/* ---- start --------------------------------------------------------------------------------- */

static inline bool is_full(const struct opscope__recorder_thread *state)
{
    return state->top == &state->frames[1 + OPSCOPE__FRAME_LIMIT];
}

static inline bool is_async(const opscope_range *fn)
{
    return fn->info != NULL && __builtin_expect(fn->info->is_async, 0);
}

/* Operator and phase, as in a cell's key. A weak phase is replaced by a strong one around it: that
 * of the enclosing range, else the thread's (opscope__hot.phase_bits). */
static inline uint64_t op_and_phase(const opscope_op *op, const struct opscope__frame *frame)
{
    const uint64_t first_strong = OPSCOPE__PHASE_BITS(OPSCOPE_BACKWARD);
    uint64_t enclosing = frame[-1].key & OPSCOPE__PHASE_BITS(0xff);
    uint64_t own;
    memcpy(&own, &op->id,
           sizeof own); /* one load: id, phase, and bytes that are masked out below */
    own &= OPSCOPE__PHASE_BITS(0xff) | UINT32_MAX;
    if (__builtin_expect(own >= first_strong, 0)) {
        return own;
    }
    if (__builtin_expect(opscope__hot.phase_bits != 0, 0) &&
        (enclosing < first_strong || enclosing == OPSCOPE__PHASE_BITS(OPSCOPE_UNKNOWN))) {
        enclosing = opscope__hot.phase_bits;
    }
    return __builtin_expect(enclosing >= first_strong, 0) ? op->id | enclosing : own;
}

/* A range has ended: adds its duration to the child time of the enclosing range. */
static inline void add_to_parent(struct opscope__frame *frame, uint64_t ticks)
{
    if (__builtin_expect(frame[-1].serial == OPSCOPE__OUTER, 0)) {
        ticks = weighted(ticks, frame->weight);
    }
    frame[-1].child_ticks += ticks;
}

static inline void begin(struct opscope__frame *frame, uint64_t key, const opscope_range *fn,
                         const struct opscope__thread *thread, void **context)
{
    frame->key = key | opscope__hot.label_bits;
    frame->range = fn;
    *context = frame;
    frame->weight = opscope__load_relaxed(
        &opscope__recorder.weights[opscope__load_relaxed(&thread->is_new) & 1]);
    frame->serial = opscope__load_relaxed(&opscope__recorder.serial);
    frame->child_ticks = 0;
}

static _Thread_local uint64_t outer_began; /* ticks ago */

void opscope__recorder_outer_began(uint64_t ticks_ago)
{
    outer_began = ticks_ago;
}

/* All other cases: a thread's first range in a segment, async ranges, outer ranges, deeper nesting
 * than there are frames. */
static int OPSCOPE__COLD start_slow(const opscope_range *fn, bool is_outer, void **context)
{
    struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread->recorder;
    if (__builtin_expect(opscope__load_relaxed(&opscope__recorder.awaits_range) != 0, 0)) {
        opscope__recorder.hooks->first_range(&opscope__recorder);
    }
    if (state == NULL || state->epoch != opscope__load_relaxed(&opscope__recorder.segment.epoch)) {
        state = opscope__recorder_thread_open(thread);
    }
    if (state == NULL || (!is_outer && opscope__load_relaxed(&opscope__recorder.is_open) == 0)) {
        return OPSCOPE_OK; /* no room, or between windows */
    }
    struct opscope__frame *frame = NULL;
    if (is_async(fn)) {
        struct async_frame *kept = malloc(sizeof *kept);
        if (kept != NULL) {
            kept->labels = opscope_debug_info_hold();
            frame = &kept->frame;
        }
    } else if (!is_full(state)) {
        frame = state->top++;
    }
    if (frame == NULL) {
        opscope__recorder_drop(state);
        return OPSCOPE_OK;
    }
    begin(frame, op_and_phase(fn->op, is_async(fn) ? state->top : frame), fn, thread, context);
    if (is_outer) {
        frame->weight = OPSCOPE__WEIGHT_ONE;
        frame->serial = OPSCOPE__OUTER;
    }
    frame->epoch = is_async(fn) ? state->epoch : opscope__load_relaxed(&opscope__recorder.serial);
    const uint64_t now = opscope__ticks();
    frame->start_ticks = is_outer       ? now - outer_began
                         : is_async(fn) ? now
                                        : opscope__range_clock_read(state, now);
    return OPSCOPE_OK;
}

int OPSCOPE__HOT opscope__recorder_range_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    const struct opscope__recorder *recorder = &opscope__recorder;
    const struct opscope__thread *thread = opscope__hot.thread;
    struct opscope__recorder_thread *state = thread->recorder;
    if (__builtin_expect(state == NULL ||
                             state->epoch != opscope__load_relaxed(&recorder->segment.epoch) ||
                             opscope__load_relaxed(&recorder->is_open) == 0 || is_async(fn) ||
                             is_full(state) || !opscope__clock_is_counter,
                         0)) {
        return start_slow(fn, false, context);
    }
    struct opscope__frame *frame = state->top++;
    begin(frame, op_and_phase(fn->op, frame), fn, thread, context);
    frame->start_ticks = opscope__range_clock_read(state, opscope__counter());
    return OPSCOPE_OK;
}

int opscope__recorder_outer_start(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    return start_slow(fn, true, context);
}

/* ---- end ----------------------------------------------------------------------------------- */

typedef uint64_t two_weights __attribute__((vector_size(16), may_alias));
typedef uint64_t two_weights_anywhere __attribute__((vector_size(16), may_alias, aligned(8)));

/* Adds to one of the line's buckets by adding to all of them, zero to all but one. The addresses of
 * the stores then do not depend on the counter just read. On some processors, reading the counter
 * again waits for the addresses of earlier stores, so a range that starts right after this one
 * would wait for the whole computation of the bucket. */
static inline void add_to_line(opscope_line *line, uint64_t bucket, uint64_t weight)
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

static inline void add_to(opscope_cell *cell, opscope_line *line, uint64_t bucket,
                          const struct opscope__frame *frame, uint64_t ticks)
{
    /* Do all loads first: as far as the compiler knows, a cell might be part of the frame. */
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

static inline void find_bucket(uint64_t ticks, uint64_t *octave, uint64_t *bucket)
{
    uint64_t units = (uint64_t)((unsigned __int128)ticks *
                                    opscope__load_relaxed(&opscope__recorder.units_per_tick) >>
                                32);
    opscope__bucket_of(units, octave, bucket);
}

/* All other cases: the first range of a key, another octave than the last one, a full table, a
 * range that failed. If there is no line, the table's `other` cell has all of them. */
static int __attribute__((noinline)) count_slow(struct opscope__recorder_thread *state,
                                                const struct opscope__frame *frame, uint64_t ticks,
                                                bool failed)
{
    opscope__table *table = state->table;
    opscope__segment *segment = &opscope__recorder.segment;
    struct opscope__slot *slot = opscope__table_find(table, frame->key);
    if (slot == NULL) {
        slot = opscope__table_add(table, segment, frame->key);
    }
    uint64_t found, bucket;
    find_bucket(ticks, &found, &bucket);
    const uint32_t octave = (uint32_t)found;
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
    /* An async range has the labels of its start, not those of the thread that ends it. */
    const opscope_debug_info *labels =
        frame->serial == NO_SERIAL ? ((const struct async_frame *)(const void *)frame)->labels
                                   : opscope__hot.thread->debug_info;
    if (__builtin_expect(labels != NULL, 0)) {
        opscope__exemplar_consider(table, segment, cell, octave, ticks, labels);
    }
    return OPSCOPE_OK;
}

/* Counts the cost of a range of a window that is in no cell, because it only encloses others or
 * belongs to the warm-up. */
static int OPSCOPE__COLD count_enclosing(const struct opscope__recorder_thread *state,
                                         const struct opscope__frame *frame)
{
    opscope__add_relaxed(&state->header->uncounted_cost_ps,
                         opscope__cost_of_range_ps(state->header, (uint32_t)frame->key));
    return OPSCOPE_OK;
}

/* Another processor's counter may be slightly behind. */
static uint64_t ticks_since(const struct opscope__frame *frame, uint64_t now)
{
    return now > frame->start_ticks ? now - frame->start_ticks : 0;
}

/* The self time of an outer range is its duration minus the windows' estimate for the ranges inside
 * it. The estimate can exceed the duration; the excess is then subtracted from the operator's next
 * ranges. */
static uint64_t outer_self_ticks(struct opscope__slot *slot, uint64_t ticks, uint64_t child_ticks)
{
    const int64_t self = (int64_t)ticks - (int64_t)child_ticks - (int64_t)slot->owed_self_ticks;
    slot->owed_self_ticks = self < 0 ? (uint64_t)-self : 0;
    return self < 0 ? 0 : (uint64_t)self;
}

/* Counts an outer range that has ended. */
static int count_outer(struct opscope__recorder_thread *state, struct opscope__frame *frame,
                       uint64_t ticks, bool failed)
{
    struct opscope__slot *slot = opscope__table_find(state->table, frame->key);
    if (slot == NULL) {
        slot = opscope__table_add(state->table, &opscope__recorder.segment, frame->key);
    }
    const uint64_t child_ticks = frame->child_ticks;
    (void)count_slow(state, frame, ticks, failed);
    if (slot != NULL && slot->cell != &opscope__no_room) {
        add(&slot->cell->whole_ticks, ticks);
        add(&slot->cell->self_ticks, outer_self_ticks(slot, ticks, child_ticks));
        if (child_ticks != 0) {
            /* The serial increases twice for each window. */
            const uint64_t serials =
                opscope__load_relaxed(&opscope__recorder.serial) - frame->epoch;
            opscope__outer_variance_add(
                frame->key, (double)child_ticks * (double)child_ticks / (double)(serials / 2 + 1));
        }
    }
    return OPSCOPE_OK;
}

/* All other cases: a range that was not recorded at its start, is async, or belongs to another
 * thread, process or segment. */
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
        if (is_now && state != NULL && frame->weight != 0) {
            frame->serial = NO_SERIAL; /* work that runs meanwhile on its thread is not inside it */
            (void)count_slow(state, frame, ticks_since(frame, now),
                             (fn->failed & OPSCOPE__FAILED) != 0);
        }
        opscope_debug_info_release(((struct async_frame *)(void *)frame)->labels);
        free(frame);
        return OPSCOPE_OK;
    }
    if (!is_here || frame < &state->frames[1] || frame >= state->top || frame->range != fn) {
        return OPSCOPE_OK; /* already unwound, when an enclosing range ended first */
    }
    for (const struct opscope__frame *within = frame + 1; within < state->top; within++) {
        frame->child_ticks += within->child_ticks;
    }
    opscope__recorder_unwind(state, frame + 1);
    if ((fn->failed & OPSCOPE__LOST) != 0) {
        add_to_parent(frame, frame->child_ticks); /* as if the range had not existed */
        opscope__recorder_unwind(state, frame);
        return OPSCOPE_OK;
    }
    state->top = frame;
    const bool is_outer = frame->serial == OPSCOPE__OUTER;
    const uint64_t ticks =
        is_outer ? ticks_since(frame, now)
                 : opscope__range_clock_leave(
                       state, frame,
                       opscope__range_clock_loop_ticks(
                           state, opscope__table_find(state->table, frame->key), frame->key),
                       now);
    add_to_parent(frame, ticks);
    const bool failed = (fn->failed & OPSCOPE__FAILED) != 0;
    if (frame->weight == 0) {
        return count_enclosing(state, frame);
    }
    return is_outer ? count_outer(state, frame, ticks, failed)
                    : count_slow(state, frame, ticks, failed);
}

/* The same, and a poll of the control block if one is due, which may change everything. */
static int OPSCOPE__COLD end_slow(const opscope_range *fn, struct opscope__frame *frame,
                                  uint64_t now)
{
    (void)end_any(fn, frame, now);
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (state != NULL && now >= state->next_poll_ticks) {
        state->next_poll_ticks = UINT64_MAX; /* no poll within the poll */
        state->next_poll_ticks = opscope__recorder.hooks->poll(state->header, now);
    }
    return OPSCOPE_OK;
}

int opscope__recorder_outer_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    return end_slow(fn, context, opscope__ticks());
}

int OPSCOPE__HOT opscope__recorder_range_end(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    struct opscope__frame *frame = context;
    if (__builtin_expect(!opscope__clock_is_counter, 0)) {
        return end_slow(fn, frame, opscope__ticks());
    }
    const uint64_t now = opscope__counter();
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    /* The common case: the innermost frame of this thread, so not an async one; not failed. If its
     * segment was closed meanwhile, its table now lies in private memory, and counting there does
     * no harm. */
    if (__builtin_expect(state == NULL || frame != state->top - 1 || frame->range != fn ||
                             fn->failed != 0 || now >= state->next_poll_ticks,
                         0)) {
        return end_slow(fn, frame, now);
    }
    struct opscope__slot *slot = opscope__table_find(state->table, frame->key);
    if (__builtin_expect(slot == NULL || slot->cost_ticks == 0, 0)) {
        return end_slow(fn, frame, now);
    }
    const uint64_t ticks = opscope__range_clock_leave(state, frame, slot->cost_ticks, now);
    state->top = frame;
    add_to_parent(frame, ticks);
    if (__builtin_expect(frame->weight == 0, 0)) {
        return count_enclosing(state, frame);
    }
    uint64_t octave, bucket;
    find_bucket(ticks, &octave, &bucket);
    if (__builtin_expect(slot->last_octave != octave, 0)) {
        return count_slow(state, frame, ticks, false);
    }
    add_to(slot->cell, slot->last_line, bucket, frame, ticks);
    return OPSCOPE_OK;
}
