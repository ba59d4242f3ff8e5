/* tensor/ops/reduce/cumprod_backward.c -- core::cumprod_backward: the gradient through cumprod. */
#include "tensor/ops/reduce/leave_one_out.h"
#include "tensor/ops/reduce/rows.h"

/* Up to the first zero, each gradient is the sum of the following gradients times products, divided
 * by the element. The zero's own is the sum of the products without it; after it all products stay
 * zero. */
#define LOOP(name, type)                                                                           \
    static void name(char *out, const char *const *inputs, int64_t begin, int64_t end,             \
                     int64_t width)                                                                \
    {                                                                                              \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const type *g = (const type *)(const void *)inputs[0] + i * width;                     \
            const type *x = (const type *)(const void *)inputs[1] + i * width;                     \
            type *to = (type *)(void *)out + i * width;                                            \
            int64_t zero = 0;                                                                      \
            double product = 1, sum = 0;                                                           \
            for (; zero < width && x[zero] != 0; zero++) {                                         \
                product *= (double)x[zero];                                                        \
                to[zero] = (type)product;                                                          \
            }                                                                                      \
            for (int64_t j = zero; j < width; j++) {                                               \
                product *= j == zero ? 1 : (double)x[j];                                           \
                sum += (double)g[j] * product;                                                     \
                to[j] = 0;                                                                         \
            }                                                                                      \
            if (zero < width) {                                                                    \
                to[zero] = (type)sum;                                                              \
            }                                                                                      \
            sum = 0;                                                                               \
            for (int64_t j = zero - 1; j >= 0; j--) {                                              \
                sum += (double)g[j] * (double)to[j];                                               \
                to[j] = (type)(sum / (double)x[j]);                                                \
            }                                                                                      \
        }                                                                                          \
    }

LOOP(slope_float32, float)
LOOP(slope_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const opscope__row_loop loops[OPSCOPE_DTYPE_COUNT] = OPSCOPE__FLOAT_ROWS(slope);
    return opscope__along_argument(call, loops, arguments[0].as.tensor, arguments[1].as.tensor,
                                   &arguments[2], 8, outputs);
}

/* For rows without zeros. `so_far` is the sum of more / x up to each element. */
static void slopes(struct opscope__formula *f, const struct opscope__backward *backward,
                   opscope_tensor **gradients)
{
    opscope_tensor *more = backward->gradients[0], *grad = backward->inputs[0],
                   *self = backward->inputs[1];
    const opscope_argument dim = backward->arguments[2];
    opscope_tensor *shares = opscope__f2(f, "div", more, self);
    opscope_tensor *so_far = opscope__f(f, "cumsum", opscope__T(shares), dim);
    if (backward->wanted[0]) {
        opscope_tensor *products = opscope__f(f, "cumprod", opscope__T(self), dim);
        gradients[0] = opscope__keep(opscope__f2(f, "mul", products, so_far));
    }
    if (backward->wanted[1]) {
        opscope_tensor *scaled = opscope__f2(f, "mul", grad, so_far);
        opscope_tensor *with =
            opscope__f(f, "cumprod_backward", opscope__T(scaled), opscope__T(self), dim);
        opscope_tensor *own =
            opscope__f(f, "cumprod_backward", opscope__T(grad), opscope__T(self), dim);
        gradients[1] =
            opscope__keep(opscope__f2(f, "sub", with, opscope__f2(f, "mul", shares, own)));
    }
}

/* For rows with zeros: handles each product in turn, and leaves out each element in turn. */
static void slopes_apart(struct opscope__formula *f, const struct opscope__backward *backward,
                         opscope_tensor **gradients)
{
    opscope_tensor *more = backward->gradients[0], *grad = backward->inputs[0],
                   *self = backward->inputs[1];
    const opscope_argument last = opscope__I(-1);
    int dim;
    f->status = opscope__wrap_dim("core::cumprod_backward", backward->arguments[2].as.integer,
                                  self->dims, &dim);
    if (f->status != OPSCOPE_OK) {
        return;
    }
    struct opscope__leave_one_out apart;
    opscope__leave_one_out_start(f, self, 1u << dim, &apart);
    opscope_tensor *rows = opscope__leave_one_out_rows(f, &apart, self);
    opscope_tensor *weights = opscope__leave_one_out_rows(f, &apart, more);
    if (backward->wanted[0] && rows != NULL) {
        const opscope_argument square = opscope__L(opscope__sizes(rows), 3);
        opscope_tensor *one =
            opscope__f(f, "to", opscope__T(apart.diagonal), opscope__I(self->dtype));
        one = opscope__f(f, "expand", opscope__T(one), square);
        opscope_tensor *each =
            opscope__f(f, "cumprod_backward", opscope__T(one), opscope__T(rows), last);
        gradients[0] = opscope__keep(opscope__leave_one_out_sum(f, &apart, weights, each));
    }
    if (backward->wanted[1]) {
        opscope_tensor *behind =
            opscope__f1(f, "triu", opscope__leave_one_out_rows(f, &apart, grad));
        opscope_tensor *without = opscope__leave_one_out_without(f, &apart, rows, 1);
        opscope_tensor *each =
            opscope__f(f, "cumprod_backward", opscope__T(behind), opscope__T(without), last);
        weights = opscope__leave_one_out_without(f, &apart, weights, 0);
        gradients[1] = opscope__keep(opscope__leave_one_out_sum(f, &apart, weights, each));
    }
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    bool has_zero = opscope__has_zero(&f, backward->inputs[1]);
    (has_zero ? slopes_apart : slopes)(&f, backward, gradients);
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cumprod_backward) = {
    .schema = "cumprod_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
    .doc = "The gradient through cumprod, correct also for elements that are zero.",
    .samples = "t(3, 4), t(3, 4), 1\n"
               "t(5, 4), (t(5, 4) > 0) * t(5, 4), 0",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
};
