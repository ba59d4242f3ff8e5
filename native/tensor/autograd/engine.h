/* tensor/autograd/engine.h -- one walk backward: what its parts share. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_ENGINE_H
#define OPSCOPE_TENSOR_AUTOGRAD_ENGINE_H

#include "tensor/autograd/graph.h"

struct opscope__crew;

/* One walk. For opscope_grad, `wanted` are the inputs and `out` their gradients. */
struct opscope__walk {
    struct opscope__graph graph;
    bool retain_graph;
    bool create_graph;
    const struct opscope__edge *wanted; /* NULL: leaves accumulate */
    size_t wanted_count;
    opscope_tensor **out;
    struct opscope__crew *crew; /* NULL: one thread walks alone */
};

/* The node's backward, in its range: a gradient, or NULL, for each of its inputs. evaluate.c */
int opscope__evaluate(const struct opscope__walk *walk, struct opscope__task *task,
                      opscope_tensor **gradients);

/* Sends one gradient (NULL: none; its reference is taken) along an edge. engine.c */
int opscope__deliver(struct opscope__walk *walk, const struct opscope__edge *edge, uint32_t turn,
                     opscope_tensor *gradient);
/* Runs a task whose gradients have all arrived, and sends on what it gives. engine.c */
int opscope__run_task(struct opscope__walk *walk, struct opscope__task *task);

/* ---- several threads (crew.c) ------------------------------------------------------------------- */

/* Whether the walk is worth more than one thread. */
bool opscope__crew_is_wanted(const struct opscope__graph *graph);
int opscope__crew_create(struct opscope__walk *walk);
/* The rest of opscope__deliver. */
int opscope__crew_deliver(struct opscope__walk *walk, struct opscope__task *task, uint32_t turn,
                          uint32_t output, opscope_tensor *gradient);
/* Runs all that is ready and becomes ready; returns when nobody runs any of it any more. */
int opscope__crew_walk(struct opscope__walk *walk);
void opscope__crew_release(struct opscope__crew *crew);

#endif
