/* tensor/ops/norm.h -- what the normalizations share: sums over a run, scales and shifts that are absent.
 *
 * A run is summed in lanes of the elements' own type over short stretches, the stretches in double.
 */
#ifndef OPSCOPE_TENSOR_OPS_NORM_H
#define OPSCOPE_TENSOR_OPS_NORM_H

#include <math.h>
#include <string.h>

#include "tensor/convert.h"
#include "tensor/formula.h"
#include "tensor/ops/loops.h"
#include "tensor/parallel.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

enum { OPSCOPE__NORM_LANES = 32, OPSCOPE__NORM_STRETCH = 64 * OPSCOPE__NORM_LANES };

/* The sum of `expression` in x[i] and y[i], two runs (which may be the same), and m, a number. */
#define OPSCOPE__RUN_SUM(name, type, expression)                                                     \
    static inline double name(const type *x, const type *y, type m, int64_t count)                   \
    {                                                                                                \
        double total = 0;                                                                            \
        (void)m;                                                                                     \
        (void)y;                                                                                     \
        for (int64_t start = 0; start < count; start += OPSCOPE__NORM_STRETCH) {                     \
            int64_t end = count - start < OPSCOPE__NORM_STRETCH ? count : start + OPSCOPE__NORM_STRETCH; \
            type lanes[OPSCOPE__NORM_LANES] = {0};                                                   \
            int64_t i = start;                                                                       \
            for (; end - i >= OPSCOPE__NORM_LANES; i += OPSCOPE__NORM_LANES) {                       \
                for (int j = 0; j < OPSCOPE__NORM_LANES; j++) {                                      \
                    const type a = x[i + j], b = y[i + j];                                           \
                    (void)b;                                                                         \
                    lanes[j] += (expression);                                                        \
                }                                                                                    \
            }                                                                                        \
            for (; i < end; i++) {                                                                   \
                const type a = x[i], b = y[i];                                                       \
                (void)b;                                                                             \
                total += (double)(expression);                                                       \
            }                                                                                        \
            for (int j = 0; j < OPSCOPE__NORM_LANES; j++) {                                          \
                total += (double)lanes[j];                                                           \
            }                                                                                        \
        }                                                                                            \
        return total;                                                                                \
    }

/* A scale or shift of `count` elements: the argument, contiguous, or where it is absent one number
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
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: %s of %s and sizes %s; expected %s and %lld elements", name, what,
                                   opscope_dtype_name((opscope_dtype)tensor->dtype),
                                   opscope__shape_text(tensor).text, opscope_dtype_name(dtype),
                                   (long long)count);
    }
    return opscope__contiguous(tensor, out);
}

#define OPSCOPE__NORM_DATA(type, tensor) ((type *)(void *)(tensor)->data)

#endif
