/* tensor/ops/nn/norm.h -- shared by the normalizations: sums over a run, and scales and shifts that
 * may be absent.
 *
 * A run is summed in vector lanes of the elements' own type over short stretches, and the stretches
 * in double.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_NORM_H
#define OPSCOPE_TENSOR_OPS_NN_NORM_H

#include <math.h>
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/parallel.h"
#include "tensor/ops/elementwise/loops.h"

enum { OPSCOPE__NORM_LANES = 32, OPSCOPE__NORM_STRETCH = 64 * OPSCOPE__NORM_LANES };

/* The sum of `expression` in a, b and c (of x, y and z, which may be the same run) and the number
 * m. */
#define OPSCOPE__RUN_SUM(name, type, expression)                                                   \
    static inline double name(const type *x, const type *y, const type *z, type m, int64_t count)  \
    {                                                                                              \
        double total = 0;                                                                          \
        (void)m;                                                                                   \
        for (int64_t start = 0; start < count; start += OPSCOPE__NORM_STRETCH) {                   \
            int64_t end =                                                                          \
                count - start < OPSCOPE__NORM_STRETCH ? count : start + OPSCOPE__NORM_STRETCH;     \
            type lanes[OPSCOPE__NORM_LANES] = {0};                                                 \
            int64_t i = start;                                                                     \
            for (; end - i >= OPSCOPE__NORM_LANES; i += OPSCOPE__NORM_LANES) {                     \
                for (int j = 0; j < OPSCOPE__NORM_LANES; j++) {                                    \
                    const type a = x[i + j], b = y[i + j], c = z[i + j];                           \
                    (void)b;                                                                       \
                    (void)c;                                                                       \
                    lanes[j] += (expression);                                                      \
                }                                                                                  \
            }                                                                                      \
            for (; i < end; i++) {                                                                 \
                const type a = x[i], b = y[i], c = z[i];                                           \
                (void)b;                                                                           \
                (void)c;                                                                           \
                total += (double)(expression);                                                     \
            }                                                                                      \
            for (int j = 0; j < OPSCOPE__NORM_LANES; j++) {                                        \
                total += (double)lanes[j];                                                         \
            }                                                                                      \
        }                                                                                          \
        return total;                                                                              \
    }

/* A scale or shift of `count` elements: the argument, contiguous; if it is absent, one number
 * everywhere. A new reference. */
static inline int opscope__norm_operand(const char *name, const opscope_argument *argument,
                                        const char *what, double otherwise, int64_t count,
                                        opscope_dtype dtype, opscope_tensor **out)
{
    if (argument->kind == OPSCOPE_ARGUMENT_NONE) {
        int status = opscope__tensor_empty(1, &count, dtype, out);
        if (status == OPSCOPE_OK) {
            opscope__fill(*out, &opscope__R(otherwise));
        }
        return status;
    }
    opscope_tensor *tensor = argument->as.tensor;
    if (tensor->count != count || tensor->dtype != dtype) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "%s: %s of %s and sizes %s; expected %s and %lld elements", name,
            what, opscope_dtype_name((opscope_dtype)tensor->dtype),
            opscope__shape_text(tensor).text, opscope_dtype_name(dtype), (long long)count);
    }
    return opscope__contiguous(tensor, out);
}

/* Elements normalized together are those along the `folded` dimensions. A scale is reshaped to the
 * sizes `like`, in which it broadcasts to the input. */
struct opscope__norm_shape {
    opscope_argument folded, kept, like; /* lists; kept: all other dimensions */
};

/* The gradients, written with differentiable operators, for second gradients. h is the normalized
 * input; the input's gradient is rstd * (g * weight - mean(g * weight) - h * mean(g * weight * h)).
 * `mean` and `rstd` are NULL if they depend on the input, and are constants otherwise. */
static inline int opscope__norm_on_tape(const struct opscope__backward *backward,
                                        const struct opscope__norm_shape *shape,
                                        const opscope_argument *weight, opscope_tensor *mean,
                                        opscope_tensor *rstd, double eps,
                                        opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument keep = opscope__B(true);
    opscope_tensor *g = backward->gradients[0], *x = backward->inputs[0];
    bool is_own = rstd == NULL;
    if (is_own) {
        mean = opscope__f(&f, "mean", opscope__T(x), shape->folded, keep);
    } else {
        mean = opscope__f(&f, "reshape", opscope__T(mean), shape->like);
        rstd = opscope__f(&f, "reshape", opscope__T(rstd), shape->like);
    }
    opscope_tensor *away = opscope__f2(&f, "sub", x, mean);
    if (is_own) {
        opscope_tensor *spread = opscope__f(&f, "mean", opscope__T(opscope__f1(&f, "square", away)),
                                            shape->folded, keep);
        rstd = opscope__f1(&f, "rsqrt", opscope__fr(&f, "add", spread, eps));
    }
    opscope_tensor *h = opscope__f2(&f, "mul", away, rstd), *part = g;
    if (backward->wanted[0]) {
        if (weight->kind != OPSCOPE_ARGUMENT_NONE) {
            part = opscope__f2(&f, "mul", g, opscope__f(&f, "reshape", *weight, shape->like));
        }
        if (is_own) {
            opscope_tensor *both = opscope__f2(&f, "mul", part, h);
            opscope_tensor *shift = opscope__f(&f, "mean", opscope__T(part), shape->folded, keep);
            opscope_tensor *slope = opscope__f(&f, "mean", opscope__T(both), shape->folded, keep);
            part = opscope__f2(&f, "sub", part, shift);
            part = opscope__f2(&f, "sub", part, opscope__f2(&f, "mul", h, slope));
        }
        gradients[0] = opscope__keep(opscope__f2(&f, "mul", part, rstd));
    }
    for (int i = 1; i < 3; i++) {
        if (backward->wanted[i]) {
            const opscope_tensor *like = backward->inputs[i];
            opscope_tensor *each = i == 1 ? opscope__f2(&f, "mul", g, h) : g;
            each =
                shape->kept.count > 0 ? opscope__f(&f, "sum", opscope__T(each), shape->kept) : each;
            gradients[i] = opscope__keep(opscope__f(&f, "reshape", opscope__T(each),
                                                    opscope__L(opscope__sizes(like), like->dims)));
        }
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

/* The gradients by the single operator of that name: its last two arguments are the weight and
 * `last`. */
static inline int opscope__norm_backward(const struct opscope__backward *backward, const char *name,
                                         const opscope_argument *weight,
                                         const opscope_argument *last, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *all[OPSCOPE_OUTPUT_LIMIT];
    const opscope_argument arguments[] = {opscope__T(backward->gradients[0]),
                                          opscope__T(backward->inputs[0]),
                                          opscope__T(backward->saved[0]),
                                          opscope__T(backward->saved[1]),
                                          *weight,
                                          *last};
    opscope__do_all(&f, name, arguments, 6, all);
    for (int i = 0; i < 3; i++) {
        if (backward->wanted[i]) {
            gradients[i] = opscope__keep(all[i]);
        }
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

#define OPSCOPE__NORM_DATA(type, tensor) ((type *)(void *)(tensor)->data)

#endif
