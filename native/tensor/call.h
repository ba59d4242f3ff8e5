/* tensor/call.h -- a call of an operator in flight. */
#ifndef OPSCOPE_TENSOR_CALL_H
#define OPSCOPE_TENSOR_CALL_H

#include "tensor/registry.h"

enum {
    OPSCOPE__SAVED_LIMIT = 8,
    OPSCOPE__SAVED_BY_FORWARD = OPSCOPE__SAVED_LIMIT - OPSCOPE_OUTPUT_LIMIT
};

struct opscope__call {
    const opscope_operator *op;
    const opscope_argument *arguments; /* all of them, defaults filled in */
    opscope_tensor *into;              /* the target of an in-place call that takes no grad */
    bool wants_grad;
    const opscope_storage *written; /* of an in-place call that wants grad: what it wrote */
    size_t held_count;
    opscope_tensor *held[OPSCOPE_ARGUMENT_LIMIT]; /* owned; its arguments as it found them */
    opscope_tensor_list *list; /* of a call for a list: where its outputs are appended */
    opscope_tensor **targets;  /* of a call that writes tensors of the caller's: these */
    size_t saved_count;
    opscope_tensor *saved[OPSCOPE__SAVED_BY_FORWARD]; /* owned */
    opscope_range_info info;
};

/* In-place: the call's result in the first argument. inplace.c. */
int opscope__call_inplace(struct opscope__call *call, opscope_argument *arguments,
                          opscope_tensor **outputs);

/* The same for one that is composite. composite.c. */
int opscope__call_composite_inplace(struct opscope__call *call, const opscope_argument *arguments,
                                    opscope_tensor **outputs);
/* With the results in call->targets. into.c. */
int opscope__call_into_targets(struct opscope__call *call, const opscope_argument *arguments,
                               opscope_tensor **outputs);

/* The next tensor argument at or after *at (an index into the arguments) and *within (into a list),
 * in the order in which backward counts inputs; false at the end. *out is NULL for an absent one.
 */
bool opscope__next_input(const opscope_operator *op, const opscope_argument *arguments, size_t *at,
                         size_t *within, opscope_tensor **out);

#endif
