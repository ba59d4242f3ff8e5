/* tensor/backward/walk.h -- one walk backward: what its parts share. */
#ifndef OPSCOPE_TENSOR_BACKWARD_WALK_H
#define OPSCOPE_TENSOR_BACKWARD_WALK_H

#include <pthread.h>

#include "tensor/backward/graph.h"

struct opscope__parallel_backward;

/* Of a walk on several threads: guards its graph (parallel_backward.c). */
struct opscope__walk_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a task became ready or ended */
};

/* One walk. For opscope_grad, `wanted` are the inputs and `out` their gradients. */
struct opscope__walk {
    struct opscope__graph graph;
    bool retain_graph;
    bool create_graph;
    const struct opscope__edge *wanted; /* NULL: leaves accumulate */
    size_t wanted_count;
    opscope_tensor **out;
    struct opscope__parallel_backward *parallel; /* NULL: one thread walks alone */
    struct opscope__walk_lock *lock;             /* of `parallel`; NULL likewise */
};

#endif
