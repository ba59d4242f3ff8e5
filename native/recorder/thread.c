/* record/recorder_thread.c -- what the recorder keeps for a thread: how it gets a table and gives
 * it back. */
#include "record/recorder_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"

void opscope__recorder_drop(struct opscope__recorder_thread *state)
{
    if (state->header != NULL) {
        opscope__add_relaxed(&state->header->dropped_count, 1);
    }
}

void opscope__recorder_unwind(struct opscope__recorder_thread *state, struct opscope__frame *first)
{
    for (struct opscope__frame *frame = first; frame < state->top; frame++) {
        /* Partner: the store in opscope__recorder_lose; ordered by whoever found the range there.
         */
        if (opscope__load_relaxed(&frame->is_lost) == 0) {
            opscope__recorder_drop(state);
        }
        opscope__store_relaxed(&frame->is_lost, 0);
    }
    state->top = first;
}

bool opscope__recorder_lose(const opscope_range *range, void *context)
{
    struct opscope__frame *frame = context;
    if (frame == NULL || frame->range != range) {
        return false; /* not recorded; or of a recorder that was stopped since */
    }
    opscope__store_relaxed(&frame->is_lost, 1); /* partner: the load in opscope__recorder_unwind */
    return true;
}

void opscope__recorder_count_lost(void)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope__add_relaxed(&opscope__segment_header(&recorder->segment)->dropped_count, 1);
    }
    opscope__segment_unlock();
}

/* With the segment lock held: a table that a thread left, else a new one, else NULL. */
static opscope__table *take_table(struct opscope__recorder *recorder)
{
    opscope__table *table = recorder->free_tables;
    if (table != NULL) {
        recorder->free_tables = table->next_free;
        return table;
    }
    if (recorder->segment.base == NULL || recorder->segment.is_full) {
        return NULL;
    }
    table = opscope__table_create(&recorder->segment, recorder->table_count);
    recorder->table_count += table != NULL;
    return table;
}

/* With the segment lock held: back to the others, or away where its segment is no more. */
static void give_table(struct opscope__recorder *recorder, opscope__table *table)
{
    if (table->epoch != recorder->segment.epoch) {
        opscope__table_destroy(table);
        return;
    }
    table->next_free = recorder->free_tables;
    recorder->free_tables = table;
}

static struct opscope__recorder_thread *state_of(struct opscope__thread *thread)
{
    if (thread->recorder == NULL) {
        thread->recorder = calloc(1, sizeof *thread->recorder);
    }
    return thread->recorder;
}

struct opscope__recorder_thread *opscope__recorder_thread_open(struct opscope__thread *thread)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    struct opscope__recorder_thread *state = state_of(thread);
    if (state == NULL) {
        return NULL;
    }
    if (state->tried_epoch == opscope__load_relaxed(&recorder->segment.epoch)) {
        opscope__recorder_drop(state);
        return NULL;
    }
    opscope__segment_lock();
    if (state->table != NULL) {
        give_table(recorder, state->table);
    }
    if (recorder->is_pending) {
        opscope__recorder_resume();
    }
    state->table = take_table(recorder);
    state->header =
        recorder->segment.base != NULL ? opscope__segment_header(&recorder->segment) : NULL;
    state->epoch = state->table != NULL ? recorder->segment.epoch : 0;
    state->tried_epoch = state->table != NULL ? 0 : recorder->segment.epoch;
    memset(state->frames, 0, sizeof state->frames); /* ranges open now are of an earlier segment */
    state->top = &state->frames[1];
    opscope__segment_unlock();
    if (state->table == NULL) {
        opscope__recorder_drop(state);
        return NULL;
    }
    opscope__recorder_labels_changed(thread); /* ids are another segment's no more */
    return state;
}

void opscope__recorder_thread_end(struct opscope__thread *thread)
{
    struct opscope__recorder_thread *state = thread->recorder;
    if (state != NULL && state->table != NULL) {
        if (state->epoch == opscope__load_relaxed(&opscope__recorder.segment.epoch)) {
            opscope__recorder_unwind(state, &state->frames[1]);
        }
        opscope__segment_lock();
        give_table(&opscope__recorder, state->table);
        opscope__segment_unlock();
        state->table = NULL;
    }
}

void opscope__recorder_thread_free(struct opscope__recorder_thread *state)
{
    free(state);
}
