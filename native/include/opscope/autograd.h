/* opscope/autograd.h -- gradients: a tape of what was computed, walked backward.
 *
 * The idea: an operator with an input that requires grad leaves a node on the tape; its outputs
 * point at the node. opscope_backward walks from the roots to the leaves, newest node first, and
 * adds what arrives at a leaf to its grad. Every node is one range of scope BACKWARD_FUNCTION,
 * named "core::AddBackward", with the forward's sequence number and thread.
 *
 * Threads: grad mode belongs to the thread, and follows it into forked tasks. Backward may run on
 * another thread than forward did, and on threads of the fork pool as well, where the tape has
 * heavy branches: it carries the debug info and local callbacks of the thread that called it, and
 * gives the same bits as alone (but for products of matrices: OpenBLAS's last bits depend on how
 * many threads it had). Any number of threads may walk backward at once, to shared leaves, and
 * through shared nodes where all retain the graph; reading a grad while a walk adds to it is the
 * caller's to order.
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
/* What backward left here (of a tensor that is no leaf: where it retains its gradient), or NULL.
 * Not a new reference. */
OPSCOPE_API opscope_tensor *opscope_tensor_grad(const opscope_tensor *tensor);
/* NULL removes it. Sizes and dtype must be the tensor's. */
OPSCOPE_API int opscope_tensor_set_grad(opscope_tensor *tensor, opscope_tensor *grad);
/* Makes backward leave the gradient of a tensor that a node made in its grad as well. */
OPSCOPE_API int opscope_tensor_retain_grad(opscope_tensor *tensor);
OPSCOPE_API bool opscope_tensor_retains_grad(const opscope_tensor *tensor);
/* The same storage, off the tape. */
OPSCOPE_API int opscope_tensor_detach(opscope_tensor *tensor, opscope_tensor **out);

/* ---- hooks --------------------------------------------------------------------------------- */

typedef struct opscope_hook opscope_hook;

/* Has `show` called with the tensor's gradient whenever backward has it complete, on whatever
 * thread walks; it may leave a new reference in *out, to go on with in the gradient's place, of its
 * sizes and dtype. Hooks run in the order they were set, and stay with the history the tensor had
 * then: a write in place gives it another. `release(user)` is called once, when the hook is removed
 * or the tape is done with it, or where this fails. The caller releases *out. */
OPSCOPE_API int opscope_tensor_register_hook(
    opscope_tensor *tensor, int (*show)(void *user, opscope_tensor *gradient, opscope_tensor **out),
    void (*release)(void *user), void *user, opscope_hook **out);
/* Repeating it does nothing. A walk that has begun to show the gradient may still call it. */
OPSCOPE_API void opscope_hook_remove(opscope_hook *hook);
OPSCOPE_API void opscope_hook_release(opscope_hook *hook);

/* ---- the tape ----------------------------------------------------------------------------- */

typedef struct opscope_node opscope_node;

/* The node that made this tensor, or NULL. Not a new reference. */
OPSCOPE_API opscope_node *opscope_tensor_grad_fn(const opscope_tensor *tensor);
OPSCOPE_API const char *opscope_node_name(const opscope_node *node); /* "core::AddBackward" */
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

/* Adds the gradients of the leaves behind `roots` to their grad. `gradients`, or one of them, may
 * be NULL for a root of one element: then it is 1. Without retain_graph the nodes give up what they
 * saved, and a second walk is an error. With create_graph the gradients are on the tape themselves;
 * a walk through an operator whose gradient cannot be differentiated is then an error. */
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
