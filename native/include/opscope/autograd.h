/* opscope/autograd.h -- gradients: a tape of the operators that ran, walked backward.
 *
 * The idea: an operator with an input that requires grad records a node on the tape; its outputs
 * point at the node. opscope_backward walks from the roots to the leaves, newest node first, and
 * adds each gradient that reaches a leaf to the leaf's grad. Every node runs as one range of scope
 * BACKWARD_FUNCTION, named "core::AddBackward", with the forward's sequence number and thread.
 *
 * Threads: grad mode belongs to the thread and follows it into forked tasks. Backward may run on
 * another thread than forward. Where the tape has heavy branches it also runs on threads of the
 * fork pool, with the debug info and local callbacks of the calling thread. The results are
 * bit-identical to those of a single thread, except for products of matrices: OpenBLAS's last bits
 * depend on its number of threads. Any number of threads may walk backward at once, to shared
 * leaves; they may share nodes if all of them retain the graph. A caller that reads a grad while a
 * walk adds to it must synchronise the two itself.
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
/* Only floating tensors can require grad; only a leaf can be set to false. */
OPSCOPE_API int opscope_tensor_set_requires_grad(opscope_tensor *tensor, bool requires_grad);
/* True if no node made the tensor. */
OPSCOPE_API bool opscope_tensor_is_leaf(const opscope_tensor *tensor);
/* The gradient that backward stored here, or NULL. Backward stores it in leaves, and in other
 * tensors that retain their gradient. The caller gets no new reference. */
OPSCOPE_API opscope_tensor *opscope_tensor_grad(const opscope_tensor *tensor);
/* NULL removes the gradient. Its sizes and dtype must be those of the tensor. */
OPSCOPE_API int opscope_tensor_set_grad(opscope_tensor *tensor, opscope_tensor *grad);
/* Makes backward also store the gradient of a tensor that a node made. */
OPSCOPE_API int opscope_tensor_retain_grad(opscope_tensor *tensor);
OPSCOPE_API bool opscope_tensor_retains_grad(const opscope_tensor *tensor);
/* A tensor on the same storage, outside the tape. */
OPSCOPE_API int opscope_tensor_detach(opscope_tensor *tensor, opscope_tensor **out);

/* ---- hooks --------------------------------------------------------------------------------- */

typedef struct opscope_hook opscope_hook;

/* Calls `show` with the tensor's complete gradient, on the thread that walks. To replace the
 * gradient, `show` stores a new reference in *out, with the tensor's sizes and dtype. Hooks run in
 * the order of their registration. They stay with the tensor's history at that time: a write in
 * place starts another history. The library calls `release(user)` once: when the hook is removed,
 * when the tape no longer needs it, or if this function fails. The caller releases *out. */
OPSCOPE_API int opscope_tensor_register_hook(
    opscope_tensor *tensor, int (*show)(void *user, opscope_tensor *gradient, opscope_tensor **out),
    void (*release)(void *user), void *user, opscope_hook **out);
/* Removing a hook again does nothing. A walk that already began to call hooks for the gradient may
 * still call it. */
OPSCOPE_API void opscope_hook_remove(opscope_hook *hook);
OPSCOPE_API void opscope_hook_release(opscope_hook *hook);

/* ---- the tape ----------------------------------------------------------------------------- */

typedef struct opscope_node opscope_node;

/* The node that made this tensor, or NULL. The caller gets no new reference. */
OPSCOPE_API opscope_node *opscope_tensor_grad_fn(const opscope_tensor *tensor);
OPSCOPE_API const char *opscope_node_name(const opscope_node *node); /* "core::AddBackward" */
OPSCOPE_API size_t opscope_node_next_count(const opscope_node *node);
/* The node that made input `index` of this node; NULL if that input is a leaf or needs no grad. */
OPSCOPE_API opscope_node *opscope_node_next(const opscope_node *node, size_t index);
OPSCOPE_API opscope_node *opscope_node_retain(opscope_node *node);
OPSCOPE_API void opscope_node_release(opscope_node *node);

/* Whether operators of this thread go on the tape (default: on). set returns the previous value. */
OPSCOPE_API bool opscope_grad_mode_set(bool on);
OPSCOPE_API bool opscope_grad_mode(void);

/* Puts a node of the caller's own on the tape, between `inputs` and `outputs`. `backward` gets a
 * gradient for each output (NULL: zero) and stores a new reference, or NULL, for each input. The
 * library calls `release(user)` once: when the node is freed, or if it could not be made. If grad
 * mode is off or no input requires grad, the function only calls `release`. */
OPSCOPE_API int opscope_autograd_record(
    const char *name, opscope_tensor *const *inputs, size_t input_count,
    opscope_tensor *const *outputs, size_t output_count,
    int (*backward)(void *user, opscope_tensor *const *gradients, opscope_tensor **out),
    void (*release)(void *user), void *user);

/* ---- walking it ---------------------------------------------------------------------------- */

/* Adds the gradients of the leaves behind `roots` to their grad. `gradients`, or one entry of it,
 * may be NULL for a root of one element: its gradient is then 1. Without retain_graph the nodes
 * release their saved tensors, and a second walk fails. With create_graph the gradients go on the
 * tape themselves; a walk through an operator whose gradient cannot be differentiated then
 * fails. */
OPSCOPE_API int opscope_backward(opscope_tensor *const *roots, opscope_tensor *const *gradients,
                                 size_t count, bool retain_graph, bool create_graph);
/* Stores the gradients of `inputs` as new references in `out` and changes no leaf. If the roots do
 * not depend on an input, the call fails, or stores NULL for it with allow_unused. */
OPSCOPE_API int opscope_grad(opscope_tensor *const *roots, opscope_tensor *const *gradients,
                             size_t count, opscope_tensor *const *inputs, size_t input_count,
                             bool retain_graph, bool create_graph, bool allow_unused,
                             opscope_tensor **out);

OPSCOPE_END_DECLS

#endif
