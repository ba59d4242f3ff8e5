/* model/program/task.c -- see model/program/task.h. */
#include "model/program/task.h"

#include <stdlib.h>
#include <time.h>

#include "base/atomics.h"
#include "opscope/fork.h"
#include "opscope/status.h"
#include "tensor/base/error.h"

enum { SHORTEST_PAUSE_NS = 20000, LONGEST_PAUSE_NS = 1000000, SWEEP_LEAST = 16 };

struct opscope__task {
    struct opscope__future base;
    bool is_joined;
    bool is_seen; /* its result, or failure, by a wait */
    struct opscope__task *next;
    opscope_future *future;
    opscope__program_runner *run;
    const struct opscope__program *program;
    struct opscope__heap *charged; /* the forking run's: it pays for the task itself */
    struct opscope__heap heap;     /* the task's, below that */
    struct opscope__run_options options;
    struct opscope__value *inputs; /* owned */
    uint32_t input_count, room;
    struct opscope__value result;
    int status;
    struct opscope__failure failure;
};

/* ---- the task ----------------------------------------------------------------------------------- */

/* A value whose texts and lists belong to that heap. No deeper than its type. */
static int copy_value(struct opscope__heap *heap, const struct opscope__value *value,
                      struct opscope__value *out)
{
    *out = opscope__value_none;
    if (value->kind == OPSCOPE__VALUE_TEXT) {
        struct opscope__text *text =
            opscope__text_new(heap, value->as.text->at, value->as.text->bytes);
        *out = text != NULL ? opscope__value_text(text) : *out;
        return text != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    }
    if (value->kind != OPSCOPE__VALUE_LIST && value->kind != OPSCOPE__VALUE_TUPLE) {
        *out = opscope__value_retain(value);
        return OPSCOPE_OK;
    }
    const struct opscope__sequence *from = value->as.sequence;
    struct opscope__sequence *copy = opscope__sequence_new(heap, from->count);
    int status = copy != NULL ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
    for (size_t i = 0; i < from->count && status == OPSCOPE_OK; i++) {
        struct opscope__value item;
        status = copy_value(heap, &from->items[i], &item);
        if (status == OPSCOPE_OK) {
            status = opscope__sequence_push(copy, item);
        }
    }
    if (status != OPSCOPE_OK) {
        opscope__sequence_release(copy);
        return status;
    }
    *out =
        value->kind == OPSCOPE__VALUE_LIST ? opscope__value_list(copy) : opscope__value_tuple(copy);
    return OPSCOPE_OK;
}

static int run_task(void *arg)
{
    struct opscope__task *task = arg;
    task->status =
        task->run(task->program, &task->heap, task->inputs, &task->options, &task->result);
    if (task->status != OPSCOPE_OK) {
        opscope__failure_take(&task->failure);
    }
    return OPSCOPE_OK;
}

static size_t task_bytes(uint32_t input_count)
{
    return sizeof(struct opscope__task) + input_count * sizeof(struct opscope__value);
}

static void free_task(struct opscope__task *task)
{
    for (uint32_t i = 0; i < task->input_count; i++) {
        opscope__value_release(&task->inputs[i]);
    }
    free(task->inputs);
    opscope__value_release(&task->result);
    opscope__failure_drop(&task->failure);
    opscope__heap_give(task->charged, task_bytes(task->room));
    free(task);
}

/* Forgets the tasks that are over and that no value refers to. */
static void sweep(struct opscope__frame *frame)
{
    for (struct opscope__task **link = &frame->tasks; *link != NULL;) {
        struct opscope__task *task = *link;
        if (task->base.references == 0 && task->is_joined && task->is_seen) {
            *link = task->next;
            frame->task_count--;
            free_task(task);
        } else {
            link = &task->next;
        }
    }
}

int opscope__task_fork(struct opscope__frame *frame, const struct opscope__program *program,
                       const opscope__operand *inputs, uint32_t count, struct opscope__value *out)
{
    if (frame->task_count >= frame->sweep_count) {
        sweep(frame);
        frame->sweep_count = 2 * frame->task_count + SWEEP_LEAST;
    }
    if (!opscope__heap_take(frame->heap, task_bytes(count))) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    struct opscope__task *task = calloc(1, sizeof *task);
    struct opscope__value *taken = calloc((size_t)count + 1, sizeof *taken);
    if (task == NULL || taken == NULL) {
        free(task);
        free(taken);
        opscope__heap_give(frame->heap, task_bytes(count));
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for a task");
    }
    task->run = frame->run;
    task->program = program;
    task->charged = frame->heap;
    task->inputs = taken;
    task->room = count;
    opscope__heap_below(&task->heap, frame->heap);
    task->options = *frame->options;
    task->options.outer = &frame->scope;
    int status = OPSCOPE_OK;
    for (; status == OPSCOPE_OK && task->input_count < count; task->input_count++) {
        status = copy_value(&task->heap, opscope__frame_at(frame, inputs[task->input_count]),
                            &taken[task->input_count]);
    }
    if (status == OPSCOPE_OK && opscope_fork(run_task, task, &task->future) != OPSCOPE_OK) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "a task could not be forked");
    }
    if (status != OPSCOPE_OK) {
        free_task(task);
        return status;
    }
    task->next = frame->tasks;
    frame->tasks = task;
    frame->task_count++;
    task->base.references = 1;
    *out = opscope__value_future(&task->base);
    return OPSCOPE_OK;
}

/* ---- waiting ------------------------------------------------------------------------------------ */

/* Waits in steps if the run polls, so that an interrupt is noticed meanwhile. A task that has not
 * begun runs on this thread. */
static int join(struct opscope__task *task, const struct opscope__run_options *options,
                struct opscope__run_scope *scope)
{
    int result, status = OPSCOPE_OK;
    struct timespec pause = {0, SHORTEST_PAUSE_NS};
    if (task->is_joined) {
        return OPSCOPE_OK;
    }
    while (options->poll != NULL && status == OPSCOPE_OK &&
           opscope_future_run(task->future) == OPSCOPE_ERR_BUSY) {
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < LONGEST_PAUSE_NS ? 2 * pause.tv_nsec : LONGEST_PAUSE_NS;
        status = options->poll(options->user);
    }
    if (status < 0) {
        opscope__store_relaxed(&scope->is_stopped, 1);
    }
    if (opscope_wait(task->future, &result) != OPSCOPE_OK) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                     "the task was lost when the process was forked");
    }
    opscope_future_release(task->future);
    task->is_joined = true;
    return status;
}

int opscope__task_wait(struct opscope__frame *frame, const struct opscope__value *future,
                       struct opscope__value *out)
{
    struct opscope__task *task = (struct opscope__task *)(void *)future->as.future;
    int status = join(task, frame->options, &frame->scope);
    task->is_seen = true;
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (task->status != OPSCOPE_OK) {
        const char *text = task->failure.text != NULL ? task->failure.text : "out of memory";
        opscope_tensor_fail(task->failure.kind, "%s", text);
        return task->status;
    }
    return copy_value(frame->heap, &task->result, out);
}

int opscope__tasks_join(struct opscope__frame *frame, int status)
{
    struct opscope__failure failure = {0};
    if (frame->tasks == NULL) {
        return status;
    }
    if (status != OPSCOPE_OK) {
        opscope__failure_take(&failure); /* waiting runs tasks on this thread, which report */
        opscope__store_relaxed(&frame->scope.is_stopped, 1);
    }
    for (struct opscope__task *task = frame->tasks; task != NULL; task = task->next) {
        int joined = join(task, frame->options, &frame->scope);
        if (status == OPSCOPE_OK && joined == OPSCOPE_OK && task->status != OPSCOPE_OK &&
            !task->is_seen) {
            failure = task->failure;
            task->failure = (struct opscope__failure){0};
            joined = task->status;
        } else if (status == OPSCOPE_OK && joined != OPSCOPE_OK) {
            opscope__failure_take(&failure);
        }
        if (status == OPSCOPE_OK && joined != OPSCOPE_OK) {
            status = joined;
            opscope__store_relaxed(&frame->scope.is_stopped, 1);
        }
    }
    if (status != OPSCOPE_OK) {
        opscope__failure_set(&failure);
    }
    return status;
}

void opscope__tasks_free(struct opscope__frame *frame)
{
    while (frame->tasks != NULL) {
        struct opscope__task *task = frame->tasks;
        frame->tasks = task->next;
        free_task(task);
    }
}
