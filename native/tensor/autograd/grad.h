/* tensor/autograd/grad.h -- the autograd state of a tensor. */
#ifndef OPSCOPE_TENSOR_AUTOGRAD_GRAD_H
#define OPSCOPE_TENSOR_AUTOGRAD_GRAD_H

#include "tensor/autograd/node.h"
#include "tensor/autograd/watch.h"
#include "tensor/core/tensor.h"

/* How the tape handles a tensor that is a view of another. */
enum opscope__view {
    OPSCOPE__NO_VIEW, /* also a tensor off the tape, as detach returns */
    OPSCOPE__VIEW, /* writes to its base change its history, and writes to it change its base's */
    OPSCOPE__VIEW_NO_GRAD, /* created under no_grad: a constant */
    OPSCOPE__VIEW_CUSTOM   /* returned by a custom node, whose backward alone knows the relation */
};

/* The autograd state of a tensor. Owner: the tensor. */
struct opscope__grad {
    bool requires_grad;
    uint8_t view;         /* enum opscope__view */
    uint32_t output;      /* of node */
    opscope_node *node;   /* that computed the tensor; NULL for a leaf */
    opscope_tensor *base; /* of a view: the tensor that owns the memory, itself no view */
    uint64_t
        version; /* atomic, of a view: the storage's version that its node belongs to; view.c */
    opscope_tensor *grad;         /* of a leaf */
    struct opscope__watch *watch; /* hooks and retain_grad; NULL: none */
};

/* The autograd state of `tensor`, created at the first call; NULL if memory runs out. */
struct opscope__grad *opscope__grad_of(opscope_tensor *tensor);

/* Like opscope_tensor_requires_grad, for a tensor whose history is up to date (view.h). */
static inline bool opscope__needs_gradient(const opscope_tensor *tensor)
{
    return tensor->grad != NULL && tensor->grad->requires_grad;
}

/* The edge to the tensor; an empty edge for NULL. Takes references. */
struct opscope__edge opscope__edge_to(opscope_tensor *tensor);

/* A watch for the tensor, also registered with its node; NULL if memory runs out. */
struct opscope__watch *opscope__watch_create(struct opscope__grad *grad);
/* Called after a tensor got another node: hooks stay with the old node, retain_grad moves to the
 * new. */
void opscope__watch_renew(struct opscope__grad *grad);

/* ---- for garbage collectors of language bindings ---------------------------------------------- */

/* Calls visit for each object that the caller gave to opscope_autograd_record or
 * opscope_tensor_register_hook and that only `tensor` keeps alive, if the caller has the only
 * reference to `tensor`. Stops if visit returns anything but 0, and returns that. Does not visit
 * objects behind further nodes. */
OPSCOPE_API int opscope__tensor_visit(const opscope_tensor *tensor, opscope__visit visit,
                                      void *arg);
/* Takes the tensor off the tape. */
OPSCOPE_API void opscope__tensor_forget(opscope_tensor *tensor);

#endif
