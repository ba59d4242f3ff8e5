/* trace/allocation.c -- adds the bytes that an operator allocates to the cell of its range.
 *
 * The bytes are added at once, not when the range ends, so the hot path in recorder/recorder.c does
 * not handle them. This may create the cell before its first range has ended; a reader ignores the
 * cell until then.
 */
#include "base/atomics.h"
#include "opscope/memory.h"
#include "record/thread.h"
#include "recorder/state.h"
#include "trace/trace.h"

/* A sampled byte counts as a fixed-point number of bytes. The thread keeps the fraction for its
 * next allocation, so that sums of small allocations are not too low. */
static uint64_t weighted(struct opscope__recorder_thread *state, uint64_t bytes, uint64_t weight)
{
    unsigned __int128 exact = (unsigned __int128)bytes * weight + state->bytes_rest;
    state->bytes_rest = (uint64_t)exact & (OPSCOPE__WEIGHT_ONE - 1);
    return (uint64_t)(exact >> OPSCOPE_SEGMENT_WEIGHT_LOG2);
}

static opscope_cell *cell_of(opscope__table *table, uint64_t key)
{
    struct opscope__slot *slot = opscope__table_find(table, key);
    if (__builtin_expect(slot == NULL, 0)) {
        slot = opscope__table_add(table, &opscope__recorder.segment, key);
    }
    return slot != NULL && slot->cell != &opscope__no_room ? slot->cell : table->other;
}

void opscope__note_allocation(uint64_t bytes)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    if (__builtin_expect(opscope__load_acquire(&opscope__trace_is_on), 0)) {
        opscope__trace_allocation(bytes);
    }
    if (state == NULL || state->epoch != opscope__load_relaxed(&recorder->segment.epoch) ||
        state->top == &state->frames[1] || opscope__hot.running != NULL) {
        return; /* no range is recorded, or a callback allocates */
    }
    const struct opscope__frame *frame = state->top - 1;
    if (frame->serial != opscope__load_relaxed(&recorder->whole_serial)) {
        return; /* a range inside it, not recorded, may be the one that allocates */
    }
    /* A plain add, as in recorder/recorder.c: only the owner writes. */
    cell_of(state->table, frame->key)->bytes += weighted(state, bytes, frame->weight);
}
