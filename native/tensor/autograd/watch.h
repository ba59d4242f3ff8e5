/* tensor/autograd/watch.h -- who wants to see a tensor's gradient on its way: hooks, retain_grad.
 */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_WATCH_H
#define OPSCOPE_TENSOR_AUTOGRAD_WATCH_H

#include "tensor/autograd/tape.h"

/* The watch of a tensor as it is now. Shared by the tensor and, where a node made it, that node: a
 * write in place gives the tensor another node, and a hook stays with what it was set on. */
struct opscope__watch {
    uint32_t reference_count;    /* all under the lock of watch.c, up to `next` */
    bool retains;                /* keeps the gradient */
    opscope_tensor *grad;        /* which is this */
    struct opscope_hook *hooks;  /* in the order they were set */
    struct opscope__watch *next; /* of the node's other outputs */
    uint32_t output;             /* of the node; never changes */
};

/* Shows what arrived to the hooks of that watch, each of which may replace it, then keeps it where
 * the watch retains. NULL for `watch` does nothing. */
int opscope__watch_show(struct opscope__watch *watch, opscope_tensor **gradient);
/* The watch of that output of the node, or NULL. Not a new reference. */
struct opscope__watch *opscope__watch_of(const opscope_node *node, uint32_t output);
/* After a tensor got another node: hooks stay behind, retain_grad comes along. */
void opscope__watch_renew(struct opscope__grad *grad);
void opscope__watch_release(struct opscope__watch *watch);
/* What visit says (not 0: stop) of the hooks of a watch nobody else holds but, with `by_node`, its
 * node. */
int opscope__watch_visit(const struct opscope__watch *watch, bool by_node, opscope__visit visit,
                         void *arg);
/* The gradient that is retained, or NULL. Not a new reference. */
opscope_tensor *opscope__watch_grad(struct opscope__watch *watch);

#endif
