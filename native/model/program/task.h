/* model/program/task.h -- prim::Fork and prim::Wait: functions of the model that run as tasks.
 *
 * A task runs a program of its own on the pool of opscope/fork.h, with the labels and the grad mode
 * of the run that forked it. Texts and lists belong to one run: a task gets copies of its inputs'
 * texts and lists, and each wait returns copies of the result's. Tensors are shared.
 *
 * No task outlives the run that forked it, because tasks use the model, its inputs and the caller's
 * stop flag. Before a run ends, it joins the tasks that no node waited for. Their failures are
 * failures of the run. A run that fails stops its tasks first.
 *
 * Threads: only the run's thread touches the list of its tasks and the reference counts. A
 * task's thread reads `program`, `inputs` and `options` and writes `heap`, `result`, `status` and
 * `failure`; opscope_fork and opscope_wait order these with what the run does before and after.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_TASK_H
#define OPSCOPE_MODEL_PROGRAM_TASK_H

#include "model/program/frame.h"

/* Starts `program` with copies of the values of these inputs. `*out` is a future. */
int opscope__task_fork(struct opscope__frame *frame, const struct opscope__program *program,
                       const opscope__operand *inputs, uint32_t count, struct opscope__value *out);
/* A new copy of a future's result, or its failure. */
int opscope__task_wait(struct opscope__frame *frame, const struct opscope__value *future,
                       struct opscope__value *out);
/* Joins all tasks of a run that ended with `status`. Returns `status`, or the first failure of a
 * task that no node waited for. */
int opscope__tasks_join(struct opscope__frame *frame, int status);
/* Frees them, once no value refers to them any more. */
void opscope__tasks_free(struct opscope__frame *frame);

#endif
