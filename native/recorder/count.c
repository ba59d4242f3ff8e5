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
