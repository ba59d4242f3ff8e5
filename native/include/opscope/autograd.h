/* opscope/autograd.h -- gradients: a tape of what was computed, walked backward.
 *
 * The idea: an operator with an input that requires grad leaves a node on the tape; its outputs
 * point at the node. opscope_backward walks from the roots to the leaves, newest node first, and
 * adds what arrives at a leaf to its grad. Every node is one range of scope BACKWARD_FUNCTION, named
 * "core::add_backward", with the forward's sequence number and thread.
 *
 * Threads: grad mode belongs to the thread. Backward may run on another thread than forward did; it
 * carries the debug info and local callbacks of the thread that called it. Two threads may walk
 * backward through shared nodes where both retain the graph.
 *
 *     opscope_tensor_set_requires_grad(weight, true);
 *     ...                                    // loss = f(weight)
 *     opscope_backward(&loss, NULL, 1, false, false);
 *     opscope_tensor_grad(weight);
 */
#ifndef OPSCOPE_AUTOGRAD_H
#define OPSCOPE_AUTOGRAD_H

#include "opscope/tensor.h"

OPSCOPE_BEGIN_DECLS

/* ---- leaves ------------------------------------------------------------------------------- */

OPSCOPE_API bool opscope_tensor_requires_grad(const opscope_tensor *tensor);
/* Floating tensors only; turning it off is for leaves only. */
OPSCOPE_API int opscope_tensor_set_requires_grad(opscope_tensor *tensor, bool requires_grad);
/* Whether no node made it. */
OPSCOPE_API bool opscope_tensor_is_leaf(const opscope_tensor *tensor);
/* What backward left here, or NULL. Not a new reference. */
OPSCOPE_API opscope_tensor *opscope_tensor_grad(const opscope_tensor *tensor);
/* NULL removes it. Sizes and dtype must be the tensor's. */
OPSCOPE_API int opscope_tensor_set_grad(opscope_tensor *tensor, opscope_tensor *grad);
/* The same storage, off the tape. */
OPSCOPE_API int opscope_tensor_detach(opscope_tensor *tensor, opscope_tensor **out);

/* ---- the tape ----------------------------------------------------------------------------- */

typedef struct opscope_node opscope_node;

/* The node that made this tensor, or NULL. Not a new reference. */
OPSCOPE_API opscope_node *opscope_tensor_grad_fn(const opscope_tensor *tensor);
OPSCOPE_API const char *opscope_node_name(const opscope_node *node); /* "core::add_backward" */
OPSCOPE_API size_t opscope_node_next_count(const opscope_node *node);
/* The node behind its input of that index; NULL for a leaf, or what needs no grad. */
OPSCOPE_API opscope_node *opscope_node_next(const opscope_node *node, size_t index);
OPSCOPE_API opscope_node *opscope_node_retain(opscope_node *node);
OPSCOPE_API void opscope_node_release(opscope_node *node);

/* Whether this thread's operators go on the tape (default on); set returns what it was. */
OPSCOPE_API bool opscope_grad_mode_set(bool on);
OPSCOPE_API bool opscope_grad_mode(void);

/* Puts a node of the caller's own on the tape, between `inputs` and `outputs`. `backward` gets a
 * gradient for each output (NULL: zero) and leaves a new reference, or NULL, for each input.
 * `release(user)` is called once, when the node is gone or could not be made. Does nothing but
 * release where grad mode is off or no input requires grad. */
OPSCOPE_API int opscope_autograd_record(
    const char *name, opscope_tensor *const *inputs, size_t input_count,
    opscope_tensor *const *outputs, size_t output_count,
    int (*backward)(void *user, opscope_tensor *const *gradients, opscope_tensor **out),
    void (*release)(void *user), void *user);

/* ---- walking it ---------------------------------------------------------------------------- */

/* Adds the gradients of the leaves behind `roots` to their grad. `gradients`, or one of them, may be
 * NULL for a root of one element: then it is 1. Without retain_graph the nodes give up what they saved,
 * and a second walk is an error. create_graph is not built yet: true is refused. */
OPSCOPE_API int opscope_backward(opscope_tensor *const *roots, opscope_tensor *const *gradients,
                                 size_t count, bool retain_graph, bool create_graph);
/* The gradients of `inputs` as new references in `out`, no leaf touched. An input the roots do not
 * depend on is an error, or NULL where allow_unused. */
OPSCOPE_API int opscope_grad(opscope_tensor *const *roots, opscope_tensor *const *gradients,
                             size_t count, opscope_tensor *const *inputs, size_t input_count,
                             bool retain_graph, bool create_graph, bool allow_unused,
                             opscope_tensor **out);

OPSCOPE_END_DECLS

#endif
