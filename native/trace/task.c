/* trace/task.c -- other contents of a trace: tasks that are forked and run, and memory that is
 * allocated. All of it is cold except the check whether a trace runs. */
#include "trace/trace.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "record/callback.h"
#include "tasks/watch.h"

/* Numbers the tasks of all traces; relaxed: any thread that forks a task increments it. */
static uint64_t task_count;

static struct opscope__trace *trace_of(const struct opscope__snapshot *snapshot)
{
    for (uint32_t i = 0; snapshot != NULL && i < snapshot->count; i++) {
        const opscope_callback *spec = &snapshot->callbacks[i]->spec;
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
    struct opscope__trace *trace = thread != NULL ? trace_of(thread->snapshot) : NULL;
    if (trace == NULL || opscope__ticks() >= trace->deadline_ticks) {
        return NULL;
    }
    *out = opscope__trace_thread_open(trace, thread);
    if (*out == NULL) {
        opscope__trace_lose(trace, NULL);
    }
    return *out != NULL ? trace : NULL;
}

/* A record with a start, and its trace in *out; NULL if no trace runs or the record is lost. */
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

static uint64_t fork_begins(uint64_t *task_number)
{
    *task_number = 0;
    if (!opscope__load_acquire(&opscope__trace_is_on)) {
        return 0;
    }
    *task_number = opscope__add_relaxed(&task_count, 1) + 1;
    return opscope__ticks();
}

static void fork_ended(uint64_t begun, uint64_t task_number)
{
    struct opscope__trace *trace;
    if (task_number != 0) {
        (void)write(OPSCOPE_TRACE_FORK, begun, opscope__ticks(), task_number, &trace);
    }
}

static void run_begins(struct opscope__task_run *run, uint64_t task_number)
{
    struct opscope__trace *trace = NULL;
    run->record = NULL;
    if (opscope__load_acquire(&opscope__trace_is_on)) {
        run->record = write(OPSCOPE_TRACE_TASK, opscope__ticks(), 0, task_number, &trace);
    }
    if (run->record != NULL) {
        /* Only an owner of a reference can hand out another one: here, the callback. The task may
         * outlive the callback. */
        opscope__add_relaxed(&trace->reference_count, 1);
        run->watcher = trace;
    }
}

static void run_ended(const struct opscope__task_run *run)
{
    opscope_trace_record *record = run->record;
    if (record != NULL) {
        /* Partner: the reader of the file. */
        opscope__store_release(&record->end_ticks, opscope__ticks());
        opscope__trace_release(run->watcher);
    }
}

void opscope__trace_allocation(uint64_t bytes)
{
    struct opscope__trace *trace;
    uint64_t now = opscope__ticks();
    (void)write(OPSCOPE_TRACE_ALLOCATION, now, now, bytes, &trace);
}

static const struct opscope__task_watch watch = {fork_begins, fork_ended, run_begins, run_ended};

static void __attribute__((constructor)) load(void)
{
    opscope__task_watch = &watch;
}
