/* tensor/ops/nn/softmax.h -- shared by softmax and log_softmax, and their gradients.
 *
 * A row is processed in stretches that stay in the first-level cache. Each stretch's exponentials
 * are taken relative to its own maximum, so that nothing overflows and x is read once; the last
 * pass corrects for the maximum of the row. Stretches depend only on the row's width, and so does
 * the result; threads share the stretches of one wide row.
 */
#ifndef OPSCOPE_TENSOR_OPS_NN_SOFTMAX_H
#define OPSCOPE_TENSOR_OPS_NN_SOFTMAX_H

#include "tensor/ops/elementwise/exponential.h"
#include "tensor/ops/reduce/reduce_loops.h"
#include "tensor/ops/reduce/rows.h"

enum {
    OPSCOPE__SOFTMAX_STRETCH = 1024,
    OPSCOPE__SOFTMAX_STRETCHES = 4096,
    OPSCOPE__SOFTMAX_COST = 12
};

struct opscope__softmax {
    const void *in;
    void *out;
    int64_t width, stretch;
    double top, sum; /* of the row: the maximum, and the sum of exponentials relative to it */
    double tops[OPSCOPE__SOFTMAX_STRETCHES], sums[OPSCOPE__SOFTMAX_STRETCHES]; /* of each stretch */
};

/* Runs `raise` over the stretches of a row, combines their results, and runs `share`. */
static inline void opscope__softmax_row(const void *in, void *out, int64_t width,
                                        opscope__part raise, opscope__part share)
{
    struct opscope__softmax row;
    row.in = in;
    row.out = out;
    row.width = width;
    row.stretch = (width + OPSCOPE__SOFTMAX_STRETCHES - 1) / OPSCOPE__SOFTMAX_STRETCHES;
    row.stretch = row.stretch > OPSCOPE__SOFTMAX_STRETCH ? row.stretch : OPSCOPE__SOFTMAX_STRETCH;
    int64_t count = (width + row.stretch - 1) / row.stretch;
    opscope__parallel(count, OPSCOPE__GRAIN / OPSCOPE__SOFTMAX_COST / row.stretch + 1, raise, &row);
    row.top = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        row.top = row.tops[i] > row.top ? row.tops[i] : row.top;
    }
    row.sum = 0;
    for (int64_t i = 0; i < count; i++) {
        row.sum += row.sums[i] * exp(row.tops[i] - row.top);
    }
    opscope__parallel(count, OPSCOPE__GRAIN / row.stretch + 1, share, &row);
}

/* Row loops. `result` is an expression in x (an element), y (its exponential relative to the
 * stretch's maximum), and the row's `top`, `log_sum` and `factor` of the stretch's exponentials.
 * Below LEAST exponentials would be subnormal, and are set to 0: EXP does not compute these, or
 * only one by one, and masks contain many. That loop is a function of its own: inlined beside folds
 * it runs out of registers, which makes a softmax a tenth slower. */
#define OPSCOPE__SOFTMAX(name, type, EXP, LEAST, LOG, result)                                      \
    static type name##_largest(const type *in, int64_t count)                                      \
    {                                                                                              \
        type top = -INFINITY;                                                                      \
        OPSCOPE__FOLD_RUN(top, type, type, -INFINITY, type, in[i], count, a > s ? a : s,           \
                          a > s ? a : s);                                                          \
        return top;                                                                                \
    }                                                                                              \
    static double name##_total(const type *in, int64_t count)                                      \
    {                                                                                              \
        double total = 0;                                                                          \
        OPSCOPE__FOLD_RUN(total, double, type, 0, type, in[i], count, s + a, s + a);               \
        return total;                                                                              \
    }                                                                                              \
    static __attribute__((noinline)) void name##_exponentials(const type *in, type *out,           \
                                                              int64_t count, type base)            \
    {                                                                                              \
        OPSCOPE__INDEPENDENT                                                                       \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const type x = in[i] - base;                                                           \
            out[i] = x < LEAST ? 0 : EXP(x < LEAST ? LEAST : x);                                   \
        }                                                                                          \
    }                                                                                              \
    static void name##_raise(int64_t begin, int64_t end, void *arg)                                \
    {                                                                                              \
        struct opscope__softmax *row = arg;                                                        \
        for (int64_t n = begin; n < end; n++) {                                                    \
            const int64_t first = n * row->stretch, rest = row->width - first;                     \
            const int64_t count = rest < row->stretch ? rest : row->stretch;                       \
            const type *in = (const type *)row->in + first;                                        \
            type *out = (type *)row->out + first;                                                  \
            const type top = name##_largest(in, count);                                            \
            name##_exponentials(in, out, count, top > -INFINITY ? top : 0);                        \
            row->tops[n] = (double)top;                                                            \
            row->sums[n] = name##_total(out, count);                                               \
        }                                                                                          \
    }                                                                                              \
    static void name##_share(int64_t begin, int64_t end, void *arg)                                \
    {                                                                                              \
        const struct opscope__softmax *row = arg;                                                  \
        const type top = (type)row->top, log_sum = LOG((type)row->sum);                            \
        (void)top, (void)log_sum;                                                                  \
        for (int64_t n = begin; n < end; n++) {                                                    \
            const int64_t first = n * row->stretch, rest = row->width - first;                     \
            const int64_t count = rest < row->stretch ? rest : row->stretch;                       \
            const type *in = (const type *)row->in + first;                                        \
            type *out = (type *)row->out + first;                                                  \
            const type factor = (type)(exp(row->tops[n] - row->top) / row->sum);                   \
            (void)factor;                                                                          \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const type x = in[i], y = out[i];                                                  \
                (void)x, (void)y;                                                                  \
                out[i] = (type)(result);                                                           \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end,             \
                     int64_t width)                                                                \
    {                                                                                              \
        for (int64_t i = begin * width; i < end * width; i += width) {                             \
            opscope__softmax_row((const type *)(const void *)inputs[0] + i,                        \
                                 (type *)(void *)out + i, width, name##_raise, name##_share);      \
        }                                                                                          \
    }

/* Row loops of the gradient: `term` and `result` are expressions in grads[i] and outputs[i];
 * `result` also in the row's `sum` of terms. */
#define OPSCOPE__SOFTMAX_BACKWARD(name, type, term, result)                                        \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end,             \
                     int64_t width)                                                                \
    {                                                                                              \
        for (int64_t n = begin * width; n < end * width; n += width) {                             \
            const type *grads = (const type *)(const void *)inputs[0] + n;                         \
            const type *outputs = (const type *)(const void *)inputs[1] + n;                       \
            type *into = (type *)(void *)out + n;                                                  \
            double total = 0;                                                                      \
            OPSCOPE__FOLD_RUN(total, double, type, 0, type, term, width, s + a, s + a);            \
            const type sum = (type)total;                                                          \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < width; i++) {                                                  \
                into[i] = (type)(result);                                                          \
            }                                                                                      \
        }                                                                                          \
    }

static inline int opscope__softmax_forward(const struct opscope__call *call,
                                           const opscope__row_loop *loops,
                                           const opscope_argument *arguments,
                                           opscope_tensor **outputs)
{
    return opscope__along_argument(call, loops, arguments[0].as.tensor, NULL, &arguments[1],
                                   OPSCOPE__SOFTMAX_COST, outputs);
}

/* The gradient, by the operator of that name. */
static inline int opscope__softmax_gradient(const struct opscope__backward *backward,
                                            const char *name, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    gradients[0] =
        opscope__keep(opscope__f(&f, name, opscope__T(backward->gradients[0]),
                                 opscope__T(backward->saved[0]), backward->arguments[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

static inline int opscope__softmax_backward(const struct opscope__call *call,
                                            const opscope__row_loop *loops,
                                            const opscope_argument *arguments,
                                            opscope_tensor **outputs)
{
    return opscope__along_argument(call, loops, arguments[0].as.tensor, arguments[1].as.tensor,
                                   &arguments[2], 4, outputs);
}

#endif
