/* tensor/formula.h -- operators called one after another, as backward functions do.
 *
 * A formula remembers the first failure and releases all that its calls made when it ends. A call
 * with a NULL tensor gives NULL, so that a formula reads like the mathematics it stands for:
 *
 *     struct opscope__formula f = {0};
 *     gradients[0] = opscope__keep(opscope__f1(&f, "neg", opscope__f2(&f, "mul", grad, out)));
 *     return opscope__formula_end(&f, gradients, count);
 */
#ifndef OPSCOPE_TENSOR_FORMULA_H
#define OPSCOPE_TENSOR_FORMULA_H

#include "tensor/operator.h"

enum { OPSCOPE__FORMULA_LIMIT = 32 };

struct opscope__formula {
    int status;
    size_t count;
    opscope_tensor *made[OPSCOPE__FORMULA_LIMIT]; /* owned */
};

/* The first output of core::<name>, owned by the formula; NULL after a failure. */
opscope_tensor *opscope__do(struct opscope__formula *formula, const char *name,
                            const opscope_argument *arguments, size_t count);
/* As opscope__do, but all outputs, each owned by the formula; NULL after a failure. */
void opscope__do_all(struct opscope__formula *formula, const char *name,
                     const opscope_argument *arguments, size_t count, opscope_tensor **outputs);
/* `tensor`, now owned by the formula as well. */
opscope_tensor *opscope__own(struct opscope__formula *formula, opscope_tensor *tensor);
/* A reference of the caller's own; NULL stays NULL. */
opscope_tensor *opscope__keep(opscope_tensor *tensor);
/* `gradient` summed over the dimensions that broadcasting gave `like`. */
opscope_tensor *opscope__sum_to(struct opscope__formula *formula, opscope_tensor *gradient,
                                const opscope_tensor *like);
/* A reduction's output over the dimensions in `dim` (a list argument, or None: all), seen again in
 * the sizes of its input `like`. */
opscope_tensor *opscope__unreduce(struct opscope__formula *formula, opscope_tensor *tensor,
                                  const opscope_tensor *like, const opscope_argument *dim);
/* A whole backward: of an output that does not change with the first input. */
int opscope__zero_backward(const struct opscope__backward *backward, opscope_tensor **gradients);
/* Releases what was made, and on failure the `count` results as well. */
int opscope__formula_end(struct opscope__formula *formula, opscope_tensor **results, size_t count);

#define opscope__T(value) ((opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = (value)}})
#define opscope__I(value) ((opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = (value)}})
#define opscope__B(value) ((opscope_argument){OPSCOPE_ARGUMENT_BOOL, 0, {.integer = (value)}})
#define opscope__R(value) ((opscope_argument){OPSCOPE_ARGUMENT_FLOAT, 0, {.real = (value)}})
#define opscope__L(list, length)                                                                   \
    ((opscope_argument){OPSCOPE_ARGUMENT_INTS, (uint32_t)(length), {.integers = (list)}})
#define opscope__S(value) ((opscope_argument){OPSCOPE_ARGUMENT_TEXT, 0, {.text = (value)}})
#define opscope__N ((opscope_argument){OPSCOPE_ARGUMENT_NONE, 0, {.integer = 0}})

/* opscope__f(formula, "mul", opscope__T(a), opscope__T(b)) */
#define opscope__f(formula, name, ...)                                                             \
    opscope__do((formula), (name), (const opscope_argument[]){__VA_ARGS__},                        \
                sizeof((const opscope_argument[]){__VA_ARGS__}) / sizeof(opscope_argument))
/* The calls that backward functions are full of: of one tensor, two, and a tensor with a number. */
#define opscope__f1(formula, name, a) opscope__f(formula, name, opscope__T(a))
#define opscope__f2(formula, name, a, b) opscope__f(formula, name, opscope__T(a), opscope__T(b))
#define opscope__fr(formula, name, a, number)                                                      \
    opscope__f(formula, name, opscope__T(a), opscope__R(number))

#endif
