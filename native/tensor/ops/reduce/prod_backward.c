/* tensor/ops/reduce/prod_backward.c -- core::prod_backward: the gradient through prod. */
#include "tensor/ops/reduce/leave_one_out.h"
#include "tensor/ops/reduce/reduction.h"
#include "tensor/ops/reduce/rows.h"

/* Loops over rows of elements with one gradient each. With one zero in a row, only the zero's own
 * gradient is not zero; with two, none is. */
#define LOOP(name, type)                                                                           \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end,             \
                     int64_t width)                                                                \
    {                                                                                              \
        for (int64_t n = begin; n < end; n++) {                                                    \
            const type *x = (const type *)(const void *)inputs[0] + n * width;                     \
            type *to = (type *)(void *)out + n * width;                                            \
            double product = (double)((const type *)(const void *)inputs[1])[n];                   \
            int64_t zeros = 0;                                                                     \
            for (int64_t i = 0; i < width; i++) {                                                  \
                zeros += x[i] == 0;                                                                \
                product *= x[i] == 0 ? 1 : (double)x[i];                                           \
            }                                                                                      \
            for (int64_t i = 0; i < width; i++) {                                                  \
                const double others = x[i] == 0 ? product : product / (double)x[i];                \
                to[i] = zeros == (x[i] == 0) ? (type)others : 0;                                   \
            }                                                                                      \
        }                                                                                          \
    }

LOOP(others_float32, float)
LOOP(others_float64, double)

/* `self` with the dimensions in `set` last: a view with self's sizes and strides in `order`. */
static int fold_last(const opscope_tensor *self, uint32_t set, int *order, opscope_tensor **out)
{
    int64_t shape[2 * OPSCOPE_DIM_LIMIT];
    int dims = 0;
    for (int folded = 0; folded < 2; folded++) {
        for (int i = 0; i < self->dims; i++) {
            if ((int)(set >> i & 1) == folded) {
                shape[OPSCOPE_DIM_LIMIT + dims] = opscope__strides(self)[i];
                shape[dims] = opscope__sizes(self)[i];
                order[dims++] = i;
            }
        }
    }
    return opscope__tensor_view(self, dims, shape, shape + OPSCOPE_DIM_LIMIT, 0, out);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(others);
    opscope_tensor *grad = arguments[0].as.tensor, *self = arguments[1].as.tensor;
    opscope_tensor *view = NULL, *rows = NULL, *grads = NULL, *made = NULL;
    int order[OPSCOPE_DIM_LIMIT];
    uint32_t set;
    int status = opscope__reduced_set(call, self, &arguments[2], &set);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t count = 1;
    for (int i = 0; i < self->dims; i++) {
        count *= (set >> i & 1) == 0 ? opscope__sizes(self)[i] : 1;
    }
    if (loops[self->dtype] == NULL || grad->dtype != self->dtype || grad->count != count) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_TYPE,
            "%s: %s of sizes %s with a gradient of %s and sizes %s: expected "
            "floats of one dtype, and the sizes of the product",
            opscope__call_name(call), opscope_dtype_name(self->dtype),
            opscope__shape_text(self).text, opscope_dtype_name(grad->dtype),
            opscope__shape_text(grad).text);
    }
    status = fold_last(self, set, order, &view);
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(view, &rows);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(grad, &grads);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(rows->dims, opscope__sizes(rows), self->dtype, &made);
    }
    if (status == OPSCOPE_OK && made->count > 0) {
        struct opscope__rows all = {
            loops[self->dtype], made->data, {rows->data, grads->data}, made->count / count};
        opscope__parallel(count, OPSCOPE__GRAIN / all.width + 1, opscope__rows_part, &all);
    }
    if (status == OPSCOPE_OK) {
        int64_t strides[OPSCOPE_DIM_LIMIT];
        for (int i = 0; i < self->dims; i++) {
            strides[order[i]] = opscope__strides(made)[i];
        }
        status = opscope__tensor_view(made, self->dims, opscope__sizes(self), strides, 0, outputs);
    }
    opscope_tensor_release(view);
    opscope_tensor_release(rows);
    opscope_tensor_release(grads);
    opscope_tensor_release(made);
    return status;
}

/* Without zeros: others * (sum(more / x) - more / x), where `others` is this operator's result.
 * With zeros, computes the products without two elements directly. */
static opscope_tensor *slope(struct opscope__formula *f, const struct opscope__backward *backward)
{
    opscope_tensor *more = backward->gradients[0], *grad = backward->inputs[0],
                   *self = backward->inputs[1];
    const opscope_argument dim = backward->arguments[2];
    uint32_t set;
    bool all = dim.kind == OPSCOPE_ARGUMENT_NONE;
    if (!opscope__has_zero(f, self)) {
        opscope_tensor *others =
            opscope__f(f, "prod_backward", opscope__T(grad), opscope__T(self), dim);
        opscope_tensor *shares = opscope__f2(f, "div", more, self);
        opscope_tensor *sum = opscope__f(f, "sum", opscope__T(shares), dim, opscope__B(true));
        return opscope__f2(f, "mul", others, opscope__f2(f, "sub", sum, shares));
    }
    f->status = opscope__dim_set("core::prod_backward", all ? NULL : dim.as.integers,
                                 all ? 0 : dim.count, self->dims, &set);
    if (f->status != OPSCOPE_OK) {
        return NULL;
    }
    struct opscope__leave_one_out apart;
    opscope__leave_one_out_start(f, self, set, &apart);
    const int64_t rows[] = {apart.rows, 1}, all_rows[] = {apart.rows, apart.width};
    opscope_tensor *grads = opscope__f(f, "reshape", opscope__T(grad), opscope__L(rows, 2));
    grads = opscope__f(f, "expand", opscope__T(grads), opscope__L(all_rows, 2));
    opscope_tensor *without =
        opscope__leave_one_out_without(f, &apart, opscope__leave_one_out_rows(f, &apart, self), 1);
    opscope_tensor *weights =
        opscope__leave_one_out_without(f, &apart, opscope__leave_one_out_rows(f, &apart, more), 0);
    opscope_tensor *others = opscope__f(f, "prod_backward", opscope__T(grads), opscope__T(without),
                                        opscope__L(&(const int64_t){-1}, 1));
    return opscope__leave_one_out_sum(f, &apart, weights, others);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0], *grad = backward->inputs[0],
                   *self = backward->inputs[1];
    const opscope_argument dim = backward->arguments[2];
    if (backward->wanted[0]) {
        opscope_tensor *one = opscope__f1(&f, "ones_like", grad);
        opscope_tensor *others =
            opscope__f(&f, "prod_backward", opscope__T(one), opscope__T(self), dim);
        opscope_tensor *sum = opscope__f(
            &f, "sum", opscope__T(opscope__f2(&f, "mul", more, others)), dim, opscope__B(true));
        gradients[0] = opscope__keep(opscope__f(&f, "reshape", opscope__T(sum),
                                                opscope__L(opscope__sizes(grad), grad->dims)));
    }
    if (backward->wanted[1]) {
        gradients[1] = opscope__keep(slope(&f, backward));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(prod_backward) = {
    .schema = "prod_backward(Tensor grad_output, Tensor self, int[]? dim=None) -> Tensor",
    .doc = "grad_output times the product of the other elements over the dimensions in dim (all "
           "if it is absent or empty), correct also for elements that are zero: the gradient "
           "through prod.",
    .samples = "t(), t(3, 4)\n"
               "t(3), t(3, 4).round(), [1]\n"
               "t(2), t(2, 3, 4), [-1, 1]",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
