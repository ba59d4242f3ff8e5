/* tensor/autograd/watch.h -- watches on a tensor's gradient: hooks, retain_grad. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_WATCH_H
#define OPSCOPE_TENSOR_AUTOGRAD_WATCH_H

#include "opscope/autograd.h"

struct opscope_hook {
    uint32_t reference_count; /* atomic: one for the caller, one for the list, one for each walk */
    struct opscope__watch *watch; /* the watch whose list it is in, or NULL; tape lock, like next */
    opscope_hook *next;
    int (*show)(void *user, opscope_tensor *gradient, opscope_tensor **out);
    void (*release)(void *user);
    void *user;
};

/* The watch of a tensor as it is now. The tensor and its node, if it has one, share it. After a
 * write in place the tensor has another node; a hook stays with the node it was set on. */
struct opscope__watch {
    uint32_t reference_count;    /* the fields up to `next`: tape lock */
    bool retains;                /* keeps the gradient */
    opscope_tensor *grad;        /* the retained gradient */
    opscope_hook *hooks;         /* in the order of their registration */
    struct opscope__watch *next; /* of the node's other outputs */
    uint32_t output;             /* of the node; never changes */
};

void opscope__watch_release(struct opscope__watch *watch);
/* The retained gradient, or NULL; a borrowed reference. */
opscope_tensor *opscope__watch_grad(struct opscope__watch *watch);

/* A callback of a language binding's garbage collector; gets an object of the caller and its
 * release. */
typedef int (*opscope__visit)(void (*release)(void *user), void *user, void *arg);

/* Calls visit for the hooks of a watch to which nothing else has a reference (with `by_node`,
 * nothing but its node); stops if visit returns anything but 0, and returns that. */
int opscope__watch_visit(const struct opscope__watch *watch, bool by_node, opscope__visit visit,
                         void *arg);

#endif
