/* model/program/task.h -- prim::Fork and prim::Wait: functions of the model that run as tasks.
 *
 * A task is a run of a program of its own, on the pool of opscope/fork.h, with the labels and the
 * grad mode of the run that forked it. Texts and lists belong to one run, so a task gets copies of
 * them, and whoever waits gets copies of the result's. Tensors are shared.
 *
 * No task outlives the run that forked it: the run joins the tasks that nobody waited for before it
 * ends, so that the model, its inputs and the caller's stop flag stay valid for them. Their
 * failures are the run's. A run that fails stops its tasks first.
 *
 * Threads: only the thread of the run touches the list of its tasks and the counts of references. A
 * task's thread reads `program`, `inputs` and `options` and writes `heap`, `result`, `status` and
 * `failure`; opscope_fork and opscope_wait order these with what the run does before and after.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_TASK_H
#define OPSCOPE_MODEL_PROGRAM_TASK_H

#include "model/program/frame.h"

/* Starts `program` with copies of the values of these inputs. `*out` is a future. */
int opscope__task_fork(struct opscope__frame *frame, const struct opscope__program *program,
                       const opscope__operand *inputs, uint32_t count, struct opscope__value *out);
/* The result of a future, each time anew, or its failure. */
int opscope__task_wait(struct opscope__frame *frame, const struct opscope__value *future,
                       struct opscope__value *out);
/* Joins all tasks of a run that ended with `status`. Returns that, or the first failure of a task
 * that nobody waited for. */
int opscope__tasks_join(struct opscope__frame *frame, int status);
/* Frees them, once no value refers to them any more. */
void opscope__tasks_free(struct opscope__frame *frame);

#endif
