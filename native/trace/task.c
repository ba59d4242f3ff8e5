/* record/trace_task.c -- what a trace shows besides ranges: tasks that are forked and run, memory
 * that is allocated. All of it is cold but for the question whether a trace is taken at all. */
#include "record/trace.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "record/callback.h"

/* Numbers tasks, of all traces; relaxed: any thread that forks one. */
static uint64_t task_count;

static struct opscope__trace *trace_of(const struct opscope__firing *firing)
{
    for (uint32_t i = 0; firing != NULL && i < firing->count; i++) {
        const opscope_callback *spec = &firing->callbacks[i]->spec;
        if (opscope__trace_is_tracer(spec)) {
            return spec->user;
        }
    }
    return NULL;
}

struct opscope__trace *opscope__trace_here(struct opscope__trace_thread **out)
{
    if (!opscope__load_acquire(&opscope__trace_is_on) || opscope__hot.running != NULL) {
        return NULL;
    }
    struct opscope__thread *thread = opscope__thread_self();
    if (thread != NULL && opscope__hot.version != opscope__load_relaxed(&opscope__version)) {
        (void)opscope__thread_refresh();
    }
    struct opscope__trace *trace = thread != NULL ? trace_of(thread->firing) : NULL;
    if (trace == NULL || opscope__ticks() >= trace->deadline_ticks) {
        return NULL;
    }
    *out = opscope__trace_thread_open(trace, thread);
    if (*out == NULL) {
        opscope__trace_lose(trace, NULL);
    }
    return *out != NULL ? trace : NULL;
}

/* A record with a start; NULL where no trace is taken, or it is lost. *out: the trace. */
static opscope_trace_record *write(uint8_t kind, uint64_t start, uint64_t end, uint64_t number,
                                   struct opscope__trace **out)
{
    struct opscope__trace_thread *state;
    struct opscope__trace *trace = opscope__trace_here(&state);
    if (trace == NULL) {
        return NULL;
    }
    opscope_trace_record *record = opscope__trace_take(trace, state, 1);
    if (record == NULL) {
        opscope__trace_lose(trace, state);
        return NULL;
    }
    record->kind = kind;
    opscope__trace_words(record)[0] = number;
    record->end_ticks = end;
    *out = trace;
    /* Partner: the reader of the file. */
    opscope__store_release(&record->start_ticks, start);
    return record;
}

uint64_t opscope__trace_fork_begin(uint64_t *task_number)
{
    *task_number = 0;
    if (!opscope__load_acquire(&opscope__trace_is_on)) {
        return 0;
    }
    *task_number = opscope__add_relaxed(&task_count, 1) + 1;
    return opscope__ticks();
}

void opscope__trace_fork_end(uint64_t begun, uint64_t task_number)
{
    struct opscope__trace *trace;
    if (task_number != 0) {
        (void)write(OPSCOPE_TRACE_FORK, begun, opscope__ticks(), task_number, &trace);
    }
}

void opscope__trace_task_begin(struct opscope__trace_task *task, uint64_t task_number)
{
    task->record = NULL;
    if (opscope__load_acquire(&opscope__trace_is_on)) {
        task->record = write(OPSCOPE_TRACE_TASK, opscope__ticks(), 0, task_number, &task->trace);
    }
    if (task->record != NULL) {
        /* Another reference can only be had from somebody who has one: the callback. */
        opscope__add_relaxed(&task->trace->reference_count, 1);
    }
}

void opscope__trace_task_end(const struct opscope__trace_task *task)
{
    if (task->record != NULL) {
        /* Partner: the reader of the file. */
        opscope__store_release(&task->record->end_ticks, opscope__ticks());
        opscope__trace_release(task->trace);
    }
}

void opscope__trace_allocation(uint64_t bytes)
{
    struct opscope__trace *trace;
    uint64_t now = opscope__ticks();
    (void)write(OPSCOPE_TRACE_ALLOCATION, now, now, bytes, &trace);
}
