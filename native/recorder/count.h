/* recorder/count.h -- how a range that ends is counted in its cell; the hot path includes it. */
#ifndef OPSCOPE_RECORDER_COUNT_H
#define OPSCOPE_RECORDER_COUNT_H

#include <string.h>

#include "recorder/state.h"
#include "segment/histogram.h"

/* Only the owner of a cell writes it; meanwhile only other processes read it. A plain addition
 * compiles to one instruction. A reader sees the old or the new value, because the supported
 * processors do not split an aligned store of eight bytes. */
static inline void opscope__count_add(uint64_t *counter, uint64_t amount)
{
    *counter += amount;
}

static inline uint64_t opscope__count_weighted(uint64_t ticks, uint64_t weight)
{
    return (uint64_t)((unsigned __int128)ticks * weight >> OPSCOPE_SEGMENT_WEIGHT_LOG2);
}

_Static_assert(offsetof(opscope_op, phase) == offsetof(opscope_op, id) + 4 &&
                   sizeof(opscope_op) >= offsetof(opscope_op, id) + 8 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "opscope__count_key reads both at once");

/* Operator and phase, as in a cell's key. `around`: the key of the enclosing range. A weak phase is
 * replaced by a strong one around it: that of the enclosing range, else the thread's
 * (opscope__hot.phase_bits). */
static inline uint64_t opscope__count_key(const opscope_op *op, uint64_t around)
{
    const uint64_t first_strong = OPSCOPE__PHASE_BITS(OPSCOPE_BACKWARD);
    uint64_t enclosing = around & OPSCOPE__PHASE_BITS(0xff);
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
static inline void opscope__count_in_parent(struct opscope__frame *frame, uint64_t ticks)
{
    if (__builtin_expect(frame[-1].serial == OPSCOPE__OUTER, 0)) {
        ticks = opscope__count_weighted(ticks, frame->weight);
    }
    frame[-1].child_ticks += ticks;
}

typedef uint64_t two_weights __attribute__((vector_size(16), may_alias));
typedef uint64_t two_weights_anywhere __attribute__((vector_size(16), may_alias, aligned(8)));

/* Adds to one of the line's buckets by adding to all of them, zero to all but one. The addresses of
 * the stores then do not depend on the counter just read. On some processors, reading the counter
 * again waits for the addresses of earlier stores, so a range that starts right after this one
 * would wait for the whole computation of the bucket. */
static inline void opscope__count_in_line(opscope_line *line, uint64_t bucket, uint64_t weight)
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

/* A range has ended that began while all ranges were recorded, and has outlasted that. Counts its
 * self time if that is known all the same. */
void opscope__count_outlasting(opscope_cell *cell, const struct opscope__frame *frame,
                               uint64_t ticks);
/* A range of this thread ends, and will be counted: whether its self time will be. */
bool opscope__count_knows_self(const struct opscope__recorder_thread *state,
                               const struct opscope__frame *frame, uint64_t ticks);

static inline void opscope__count_in(opscope_cell *cell, opscope_line *line, uint64_t bucket,
                                     const struct opscope__frame *frame, uint64_t ticks)
{
    /* Do all loads first: as far as the compiler knows, a cell might be part of the frame. */
    const uint64_t weight = frame->weight;
    const uint64_t child_ticks = frame->child_ticks;
    const bool is_whole = frame->serial == opscope__load_relaxed(&opscope__recorder.whole_serial);
    uint64_t self_ticks = ticks > child_ticks ? ticks - child_ticks : 0;
    uint64_t total = ticks;
    if (__builtin_expect(weight != OPSCOPE__WEIGHT_ONE, 0)) {
        total = opscope__count_weighted(ticks, weight);
        self_ticks = opscope__count_weighted(self_ticks, weight);
    }
    opscope__count_add(&cell->sample_count, 1);
    opscope__count_add(&cell->weight, weight);
    opscope__count_add(&cell->total_ticks, total);
    opscope__count_in_line(line, bucket, weight);
    if (is_whole) {
        opscope__count_add(&cell->whole_ticks, total);
        opscope__count_add(&cell->self_ticks, self_ticks);
    } else if ((frame->serial & 1) != 0) {
        opscope__count_outlasting(cell, frame, ticks);
    }
}

static inline void opscope__count_bucket(uint64_t ticks, uint64_t *octave, uint64_t *bucket)
{
    uint64_t units = (uint64_t)((unsigned __int128)ticks *
                                    opscope__load_relaxed(&opscope__recorder.units_per_tick) >>
                                32);
    opscope__bucket_of(units, octave, bucket);
}

/* Of an async range, which may end on another thread. */
struct opscope__async_frame {
    struct opscope__frame frame;      /* first: the range's context is its address */
    const opscope_debug_info *labels; /* at the start; holds a reference */
};

/* All other cases: the first range of a key, another octave than the last one, a full table, a
 * range that failed, labels. If there is no line, the table's `other` cell has all of them. */
int opscope__count_slow(struct opscope__recorder_thread *state, const struct opscope__frame *frame,
                        uint64_t ticks, bool failed);

/* An outer range of that duration has ended. The frame need not be among the thread's. */
int opscope__count_outer(struct opscope__recorder_thread *state, const struct opscope__frame *frame,
                         uint64_t ticks, bool failed);

#endif
