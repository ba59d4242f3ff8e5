/* tensor/backward/deliver.c -- sending a gradient along an edge: it is added to what has arrived at
 * the task there, which is ready once all its edges have delivered.
 *
 * On several threads each gradient has its turn, so that the sums are those of a walk alone: one
 * that comes out of turn is laid by until those before it are there. One thread at a time adds to a
 * task (is_adding), without the lock; the others lay theirs by and go on.
 */
#include "tensor/backward/deliver.h"

#include "tensor/backward/sum.h"

/* With the lock held; lets go of it during additions. */
static int add_those_whose_turn_it_is(struct opscope__walk_lock *lock, struct opscope__task *task)
{
    int status = OPSCOPE_OK;
    task->is_adding = true;
    while (status == OPSCOPE_OK && task->next < task->expected &&
           task->deliveries[task->next].is_here) {
        struct opscope__delivery *delivery = &task->deliveries[task->next++];
        opscope_tensor *gradient = delivery->gradient;
        delivery->gradient = NULL;
        if (gradient != NULL) {
            pthread_mutex_unlock(&lock->mutex);
            status = opscope__sum_add(&task->arrived[delivery->output], gradient);
            pthread_mutex_lock(&lock->mutex);
        }
    }
    task->is_adding = false;
    return status;
}

static int deliver_in_turn(struct opscope__walk *walk, struct opscope__task *task, uint32_t turn,
                           uint32_t output, opscope_tensor *gradient)
{
    struct opscope__walk_lock *lock = walk->lock;
    int status = OPSCOPE_OK;
    pthread_mutex_lock(&lock->mutex);
    task->deliveries[turn] = (struct opscope__delivery){gradient, output, true};
    if (!task->is_adding) {
        status = add_those_whose_turn_it_is(lock, task);
        if (status == OPSCOPE_OK && task->next == task->expected) {
            opscope__graph_push(&walk->graph, task);
            pthread_cond_signal(&lock->changed);
        }
    }
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

int opscope__deliver(struct opscope__walk *walk, const struct opscope__edge *edge, uint32_t turn,
                     opscope_tensor *gradient)
{
    struct opscope__task *task = opscope__graph_find(&walk->graph, edge);
    if (task == NULL) {
        opscope_tensor_release(gradient);
        return OPSCOPE_OK;
    }
    int status = OPSCOPE_OK;
    if (gradient != NULL) {
        const opscope_tensor *of =
            edge->leaf != NULL ? edge->leaf : edge->node->outputs[edge->output];
        status = opscope__gradient_fit(edge->leaf != NULL ? "backward" : edge->node->name, of,
                                       &gradient);
    }
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(gradient);
        return status;
    }
    if (walk->lock != NULL) {
        return deliver_in_turn(walk, task, turn, edge->output, gradient);
    }
    if (gradient != NULL) {
        status = opscope__sum_add(&task->arrived[edge->output], gradient);
    }
    if (--task->pending == 0) {
        opscope__graph_push(&walk->graph, task);
    }
    return status;
}
