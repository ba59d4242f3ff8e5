/* tensor/dispatch/formula.h -- sequences of operator calls, as in backward functions.
 *
 * A formula remembers the first failure, and at its end releases all results of its calls. A call
 * with a NULL tensor returns NULL, so that a formula reads like the mathematics:
 *
 *     struct opscope__formula f = {0};
 *     gradients[0] = opscope__keep(opscope__f1(&f, "neg", opscope__f2(&f, "mul", grad, out)));
 *     return opscope__formula_end(&f, gradients, count);
 */
#ifndef OPSCOPE_TENSOR_DISPATCH_FORMULA_H
#define OPSCOPE_TENSOR_DISPATCH_FORMULA_H

#include "tensor/core/argument.h"
#include "tensor/core/operator.h"

enum { OPSCOPE__FORMULA_LIMIT = 32 };

struct opscope__formula {
    int status;
    size_t count;
    opscope_tensor *made[OPSCOPE__FORMULA_LIMIT]; /* owned */
};

/* The first output of core::<name>, owned by the formula; NULL after a failure. */
opscope_tensor *opscope__do(struct opscope__formula *formula, const char *name,
                            const opscope_argument *arguments, size_t count);
/* Like opscope__do, but returns all outputs, each owned by the formula; NULL after a failure. */
void opscope__do_all(struct opscope__formula *formula, const char *name,
                     const opscope_argument *arguments, size_t count, opscope_tensor **outputs);
/* Makes the formula an owner of `tensor`. */
opscope_tensor *opscope__own(struct opscope__formula *formula, opscope_tensor *tensor);
/* A new reference, owned by the caller; NULL for NULL. */
opscope_tensor *opscope__keep(opscope_tensor *tensor);
/* `gradient`, summed over the dimensions that broadcasting added to `like`. */
opscope_tensor *opscope__sum_to(struct opscope__formula *formula, opscope_tensor *gradient,
                                const opscope_tensor *like);
/* The output of a reduction over the dimensions in `dim` (a list argument, or None: all), expanded
 * to the sizes of its input `like`. */
opscope_tensor *opscope__unreduce(struct opscope__formula *formula, opscope_tensor *tensor,
                                  const opscope_tensor *like, const opscope_argument *dim);
/* A complete backward of an output that does not depend on the first input. */
int opscope__zero_backward(const struct opscope__backward *backward, opscope_tensor **gradients);
/* Ends a complete backward: the elementwise derivative of the output with respect to the only input
 * is `slope`. */
int opscope__formula_chain(struct opscope__formula *formula,
                           const struct opscope__backward *backward, opscope_tensor *slope,
                           opscope_tensor **gradients);
/* Releases the results of all calls and, on failure, the `count` gradients too. */
int opscope__formula_end(struct opscope__formula *formula, opscope_tensor **results, size_t count);

/* opscope__f(formula, "mul", opscope__T(a), opscope__T(b)) */
#define opscope__f(formula, name, ...)                                                             \
    opscope__do((formula), (name), (const opscope_argument[]){__VA_ARGS__},                        \
                sizeof((const opscope_argument[]){__VA_ARGS__}) / sizeof(opscope_argument))
/* The most frequent calls in backward functions: with one tensor, two tensors, a tensor and a
 * number. */
#define opscope__f1(formula, name, a) opscope__f(formula, name, opscope__T(a))
#define opscope__f2(formula, name, a, b) opscope__f(formula, name, opscope__T(a), opscope__T(b))
#define opscope__fr(formula, name, a, number)                                                      \
    opscope__f(formula, name, opscope__T(a), opscope__R(number))

#endif
