/* recorder/thread.c -- the recorder's state of a thread: how it gets a table and gives it back. */
#include "recorder/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "record/demand.h"
#include "recorder/cost.h"
#include "recorder/off_cpu.h"
#include "recorder/recorder.h"

void opscope__recorder_drop(struct opscope__recorder_thread *state)
{
    if (state->header != NULL) {
        opscope__add_relaxed(&state->header->dropped_count, 1);
    }
}

void opscope__recorder_unwind(struct opscope__recorder_thread *state, struct opscope__frame *first)
{
    for (struct opscope__frame *frame = first; frame < state->top; frame++) {
        /* Partner: the store in opscope__recorder_lose. The code that found the range there orders
         * the two. */
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
        return false; /* not recorded, or by a recorder that has stopped since */
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

/* With the segment lock held: a table that a thread left, else a new one, else NULL. The main
 * thread's is its own, because the reader compares it with what that thread had. */
static opscope__table *take_table(struct opscope__recorder *recorder, bool is_main, bool is_new)
{
    opscope__table *table = recorder->free_tables;
    if (table != NULL && !is_main) {
        recorder->free_tables = table->next_free;
        return table;
    }
    if (recorder->segment.base == NULL) {
        return NULL;
    }
    table = opscope__table_create(&recorder->segment, recorder->table_count);
    if (table != NULL) {
        recorder->table_count++;
        recorder->is_of_new[table->id] = is_new;
    }
    return table;
}

/* With the segment lock held: puts the table among the free ones, or frees it if its segment is
 * closed. */
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
        struct opscope__recorder_thread *state = calloc(1, sizeof *state);
        if (state != NULL) {
            state->top = &state->frames[1];
            /* Partner: the load in opscope__recorder_has_open_ranges. */
            opscope__store_release(&thread->recorder, state);
        }
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
    const uint64_t start_ns = opscope__cost_setup_start();
    opscope__segment_lock();
    if (state->table != NULL) {
        give_table(recorder, state->table);
    }
    if (recorder->is_pending) {
        recorder->hooks->resume();
    }
    const bool is_main = opscope__off_cpu_begin_segment();
    state->table = take_table(recorder, is_main, opscope__load_relaxed(&thread->is_new) != 0);
    state->header =
        recorder->segment.base != NULL ? opscope__segment_header(&recorder->segment) : NULL;
    /* Partner: the load in opscope__recorder_has_open_ranges, which may see either value. */
    opscope__store_relaxed(&state->epoch, state->table != NULL ? recorder->segment.epoch : 0);
    state->tried_epoch = state->table != NULL ? 0 : recorder->segment.epoch;
    memset(state->frames, 0,
           sizeof state->frames); /* ranges open now belong to an earlier segment */
    state->frames[0].key = opscope__load_relaxed(&recorder->unseen_phase_bits);
    state->top = &state->frames[1];
    /* Without a counter, the slow path measures no gaps. */
    if (is_main && state->table != NULL && opscope__clock_is_counter) {
        opscope__store_relaxed(&state->header->main_table, (uint64_t)state->table->id + 1);
    }
    opscope__segment_unlock();
    if (state->table == NULL) {
        opscope__recorder_drop(state);
        return NULL;
    }
    opscope__recorder_labels_changed(thread); /* ids of an earlier segment are no longer valid */
    opscope__demand_thread_recorded();
    opscope__cost_setup_end(start_ns);
    return state;
}

void opscope__recorder_tell_tables(void)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    memset(recorder->is_of_new, true, sizeof recorder->is_of_new);
    opscope__registry_lock();
    for (const struct opscope__thread *thread = opscope__registry_first(); thread != NULL;
         thread = thread->next) {
        /* Partner: the store in state_of. Threads take tables with the segment lock held. */
        const struct opscope__recorder_thread *state = opscope__load_acquire(&thread->recorder);
        if (state != NULL && state->table != NULL && opscope__load_relaxed(&thread->is_new) == 0 &&
            opscope__load_relaxed(&state->epoch) == recorder->segment.epoch) {
            recorder->is_of_new[state->table->id] = false;
        }
    }
    opscope__registry_unlock();
    opscope__segment_unlock();
}

/* The owner writes its frames without synchronisation. The values read here may be slightly old;
 * they only decide when a window closes. */
static bool OPSCOPE__UNSYNCHRONIZED is_any_open(const struct opscope__recorder_thread *state,
                                                uint64_t serial)
{
    const struct opscope__frame *const end = &state->frames[1 + OPSCOPE__FRAME_LIMIT];
    const struct opscope__frame *top = *(struct opscope__frame *const volatile *)&state->top;
    for (const struct opscope__frame *frame = &state->frames[1]; frame < top && frame < end;
         frame++) {
        if (*(const volatile uint64_t *)&frame->serial == serial &&
            *(const volatile uint64_t *)&frame->weight != 0) {
            return true;
        }
    }
    return false;
}

bool opscope__recorder_has_open_ranges(void)
{
    const uint64_t serial = opscope__load_relaxed(&opscope__recorder.serial);
    const uint32_t epoch = opscope__load_relaxed(&opscope__recorder.segment.epoch);
    bool found = false;
    opscope__registry_lock();
    for (const struct opscope__thread *thread = opscope__registry_first(); thread != NULL && !found;
         thread = thread->next) {
        /* Partner: the store in state_of, after all other fields were set. */
        const struct opscope__recorder_thread *state = opscope__load_acquire(&thread->recorder);
        found = state != NULL && opscope__load_relaxed(&state->epoch) == epoch &&
                is_any_open(state, serial);
    }
    opscope__registry_unlock();
    return found;
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
        state->table = NULL;
        opscope__segment_unlock();
    }
}

void opscope__recorder_thread_free(struct opscope__thread *thread)
{
    free(thread->recorder);
}
