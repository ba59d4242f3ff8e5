/* tensor/backward/task.h -- running one task of a walk. */
#ifndef OPSCOPE_TENSOR_BACKWARD_TASK_H
#define OPSCOPE_TENSOR_BACKWARD_TASK_H

#include "tensor/backward/walk.h"

/* Runs a task whose gradients have all arrived, and sends on what it gives. */
int opscope__run_task(struct opscope__walk *walk, struct opscope__task *task);

#endif
