/* tensor/backward/task.c -- one task of a walk: hooks see the gradients that arrived, the caller
 * gets those that it asked for, a node's backward runs and sends its results on, and a leaf adds
 * them to its grad. */
#include "tensor/backward/task.h"

#include <stdlib.h>

#include "tensor/autograd/grad.h"
#include "tensor/backward/deliver.h"
#include "tensor/backward/evaluate.h"
#include "tensor/backward/hooks.h"
#include "tensor/backward/sum.h"

/* Hands what arrived at a wanted input to the caller that asked for it. */
static void capture(struct opscope__walk *walk, const struct opscope__task *task)
{
    for (size_t i = 0; i < walk->wanted_count; i++) {
        const struct opscope__edge *edge = &walk->wanted[i];
        if (edge->node == task->node && edge->leaf == task->leaf &&
            task->arrived[edge->output] != NULL) {
            walk->out[i] = opscope_tensor_retain(task->arrived[edge->output]);
        }
    }
}

static bool has_arrived(const struct opscope__task *task)
{
    bool found = false;
    for (size_t i = 0; i < task->output_count; i++) {
        found |= task->arrived[i] != NULL;
    }
    return found;
}

static int run_node(struct opscope__walk *walk, struct opscope__task *task)
{
    opscope_node *node = task->node;
    size_t count = node->input_count;
    opscope_tensor *few[16] = {NULL}, **gradients = few;
    if (count > sizeof few / sizeof *few) {
        gradients = calloc(count, sizeof *gradients);
        if (gradients == NULL) {
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
        }
    }
    /* A node with unused outputs has nothing to compute, but other nodes may wait for it. */
    int status = has_arrived(task) ? opscope__evaluate(walk, task, gradients) : OPSCOPE_OK;
    for (size_t i = 0; i < count; i++) {
        if (status == OPSCOPE_OK) {
            status = opscope__deliver(walk, &node->edges[i],
                                      task->turns != NULL ? task->turns[i] : 0, gradients[i]);
        } else {
            opscope_tensor_release(gradients[i]);
        }
    }
    if (gradients != few) {
        free(gradients);
    }
    return status;
}

static int show(struct opscope__task *task)
{
    if (task->leaf != NULL) {
        return opscope__watch_show(task->leaf->grad->watch, &task->arrived[0]);
    }
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < task->output_count && status == OPSCOPE_OK; i++) {
        status = opscope__watch_show(opscope__watch_of(task->node, (uint32_t)i), &task->arrived[i]);
    }
    return status;
}

int opscope__run_task(struct opscope__walk *walk, struct opscope__task *task)
{
    int status = show(task);
    if (status == OPSCOPE_OK && walk->wanted != NULL) {
        capture(walk, task);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (task->node != NULL) {
        status = task->is_idle ? OPSCOPE_OK : run_node(walk, task);
    } else if (walk->wanted == NULL && task->arrived[0] != NULL) {
        status = opscope__accumulate(task->leaf, &task->leaf->grad->grad, task->arrived[0]);
    }
    for (size_t i = 0; i < task->output_count; i++) {
        opscope_tensor_release(task->arrived[i]);
        task->arrived[i] = NULL;
    }
    return status;
}
