/* tensor/backward/parallel_backward.h -- one walk on several threads. */
#ifndef OPSCOPE_TENSOR_BACKWARD_PARALLEL_BACKWARD_H
#define OPSCOPE_TENSOR_BACKWARD_PARALLEL_BACKWARD_H

#include "tensor/backward/walk.h"

/* Whether the walk is worth more than one thread. */
bool opscope__parallel_backward_is_wanted(const struct opscope__graph *graph);
/* From now on deliveries may come from several threads. */
int opscope__parallel_backward_create(struct opscope__walk *walk);
/* Runs all tasks that are ready or become ready; returns when none is running any more. */
int opscope__parallel_backward_run(struct opscope__walk *walk);
void opscope__parallel_backward_release(struct opscope__parallel_backward *parallel);

#endif
