/* recorder/count.c -- see recorder/count.h: the cases that are not in line. */
#include "recorder/count.h"

#include "base/atomics.h"
#include "record/debug_info.h"
#include "recorder/exemplar.h"

int opscope__count_slow(struct opscope__recorder_thread *state, const struct opscope__frame *frame,
                        uint64_t ticks, bool failed)
{
    opscope__table *table = state->table;
    opscope__segment *segment = &opscope__recorder.segment;
    struct opscope__slot *slot = opscope__table_find(table, frame->key);
    if (slot == NULL) {
        slot = opscope__table_add(table, segment, frame->key);
    }
    uint64_t found, bucket;
    opscope__count_bucket(ticks, &found, &bucket);
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
    opscope__count_in(cell, line, bucket, frame, ticks);
    if (failed) {
        opscope__count_add(&cell->error_weight, frame->weight);
    }
    /* An async range has the labels of its start, not those of the thread that ends it. */
    const opscope_debug_info *labels =
        frame->serial == OPSCOPE__NO_SERIAL
            ? ((const struct opscope__async_frame *)(const void *)frame)->labels
            : opscope__hot.thread->debug_info;
    if (__builtin_expect(labels != NULL, 0)) {
        opscope__exemplar_consider(table, segment, cell, octave, ticks, labels);
    }
    return OPSCOPE_OK;
}

/* ---- ranges that outlast their window ------------------------------------------------------------ */

/* What is inside them and began after the window is not known. There is nothing to speak of
 *
 *   if one was inside when the window closed, and ended just before this range did: an operator
 *   that calls another one to do the work;
 *   if little was inside while the window was open, which is some milliseconds, next to nothing of
 *   its whole time, and little is inside other ranges of this key: an operator that does the work
 *   itself, after it has allocated its result.
 *
 * Otherwise the self time is unknown. It would be so for nearly all time of a program whose
 * operators outlast each window, such as convolutions on a CPU. */
enum { NEGLIGIBLE_LOG2 = 6, LITTLE_LOG2 = 3, SEEN_PER_SECOND = 1000 };

/* For how long it was known what is inside, in ticks of the thread's clock; at least a millisecond,
 * or 0. */
static uint64_t seen_ticks(const struct opscope__recorder_thread *state,
                           const struct opscope__frame *frame, bool is_last_window)
{
    const uint64_t least = state->header->ticks_per_second / SEEN_PER_SECOND;
    const uint64_t closed = opscope__load_relaxed(&opscope__recorder.closed_ticks);
    const int64_t seen = (int64_t)(closed - state->cost_ticks - frame->start_ticks);
    if (seen < (int64_t)least) {
        return 0;
    }
    return is_last_window ? (uint64_t)seen : least;
}

static bool knows_outlasting(const opscope_cell *cell, const struct opscope__frame *frame,
                             uint64_t ticks)
{
    const struct opscope__recorder_thread *state = opscope__hot.thread->recorder;
    /* Else what lies between two windows would count as inside nothing. */
    const bool is_last_window =
        opscope__load_relaxed(&opscope__recorder.serial) == frame->serial + 1;
    const uint64_t after = frame->start_ticks + ticks - state->inner_end_ticks;
    const bool calls_another =
        frame->child_ticks != 0 && is_last_window && after <= ticks >> NEGLIGIBLE_LOG2;
    const bool works_itself =
        frame->child_ticks < seen_ticks(state, frame, is_last_window) >> LITTLE_LOG2 &&
        frame->child_ticks <= ticks >> NEGLIGIBLE_LOG2 && cell->self_ticks >= cell->whole_ticks / 2;
    return calls_another || works_itself;
}

void OPSCOPE__COLD opscope__count_outlasting(opscope_cell *cell, const struct opscope__frame *frame,
                                             uint64_t ticks)
{
    if (knows_outlasting(cell, frame, ticks)) {
        const uint64_t self_ticks = ticks > frame->child_ticks ? ticks - frame->child_ticks : 0;
        opscope__count_add(&cell->whole_ticks, opscope__count_weighted(ticks, frame->weight));
        opscope__count_add(&cell->self_ticks, opscope__count_weighted(self_ticks, frame->weight));
    }
}

bool OPSCOPE__COLD opscope__count_knows_self(const struct opscope__recorder_thread *state,
                                             const struct opscope__frame *frame, uint64_t ticks)
{
    static const opscope_cell none;
    if (frame->serial == opscope__load_relaxed(&opscope__recorder.whole_serial)) {
        return true;
    }
    const struct opscope__slot *slot = opscope__table_find(state->table, frame->key);
    return (frame->serial & 1) != 0 &&
           knows_outlasting(slot != NULL ? slot->cell : &none, frame, ticks);
}

/* ---- outer ranges ----------------------------------------------------------------------------- */

/* The self time of an outer range is its duration minus the windows' estimate for the ranges inside
 * it. The estimate can exceed the duration; the excess is then subtracted from the operator's next
 * ranges. */
static uint64_t outer_self_ticks(struct opscope__slot *slot, uint64_t ticks, uint64_t child_ticks)
{
    const int64_t self = (int64_t)ticks - (int64_t)child_ticks - (int64_t)slot->owed_self_ticks;
    slot->owed_self_ticks = self < 0 ? (uint64_t)-self : 0;
    return self < 0 ? 0 : (uint64_t)self;
}

int opscope__count_outer(struct opscope__recorder_thread *state, const struct opscope__frame *frame,
                         uint64_t ticks, bool failed)
{
    struct opscope__slot *slot = opscope__table_find(state->table, frame->key);
    if (slot == NULL) {
        slot = opscope__table_add(state->table, &opscope__recorder.segment, frame->key);
    }
    uint64_t octave, bucket;
    opscope__count_bucket(ticks, &octave, &bucket);
    if (slot != NULL && slot->last_octave == octave && !failed &&
        opscope__hot.thread->debug_info == NULL) {
        opscope__count_in(slot->cell, slot->last_line, bucket, frame, ticks);
    } else {
        (void)opscope__count_slow(state, frame, ticks, failed);
    }
    if (slot != NULL && slot->cell != &opscope__no_room) {
        opscope__count_add(&slot->cell->whole_ticks, ticks);
        opscope__count_add(&slot->cell->self_ticks,
                           outer_self_ticks(slot, ticks, frame->child_ticks));
    }
    return OPSCOPE_OK;
}
