/* tensor/ops/reduce/var.c -- core::var: the variance over dimensions. */
#include "tensor/kernels/iterate.h"
#include "tensor/ops/reduce/reduction.h"

OPSCOPE__FOLD_SUM(sum_float64, double, double, double, double, s)
OPSCOPE__BINARY(deviation, double, double, (a - b) * (a - b))

static const struct opscope__reduction sums = OPSCOPE__FOLDED(sum_float64, 0, 1);

/* The number of elements that fold into one, and the divisor of the variance. */
static double divisor(const opscope_tensor *self, uint32_t set, int64_t correction)
{
    int64_t folded = 1;
    for (int i = 0; i < self->dims; i++) {
        folded *= (set >> i & 1) != 0 ? opscope__sizes(self)[i] : 1;
    }
    int64_t degrees = folded - correction;
    return degrees > 0 ? (double)degrees : 0;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *self = arguments[0].as.tensor;
    opscope_tensor *wide = NULL, *mean = NULL, *sum = NULL;
    uint32_t set;
    int status = opscope__reduced_set(call, self, &arguments[1], &set);
    if (status == OPSCOPE_OK && self->dtype != OPSCOPE_FLOAT32 && self->dtype != OPSCOPE_FLOAT64) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s",
                                     opscope__call_name(call),
                                     opscope_dtype_name((opscope_dtype)self->dtype));
    }
    /* Two passes, in float64: the mean first, then the squared deviations from it. */
    if (status == OPSCOPE_OK) {
        status = opscope__convert(self, OPSCOPE_FLOAT64, &wide);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__reduce(&sums, wide, set, true, OPSCOPE_FLOAT64, &mean);
    }
    if (status == OPSCOPE_OK) {
        double count = divisor(self, set, 0);
        for (int64_t i = 0; i < mean->count; i++) {
            ((double *)(void *)mean->data)[i] /= count;
        }
        struct opscope__iterator it;
        opscope__iterator_start(&it, wide->dims, opscope__sizes(wide));
        opscope__iterator_add(&it, wide);
        opscope__iterator_add(&it, wide);
        opscope__iterator_add(&it, mean);
        opscope__iterate(&it, deviation, &(double){0}, 1);
        status =
            opscope__reduce(&sums, wide, set, arguments[3].as.integer != 0, OPSCOPE_FLOAT64, &sum);
    }
    if (status == OPSCOPE_OK) {
        double degrees = divisor(self, set, arguments[2].as.integer);
        for (int64_t i = 0; i < sum->count; i++) {
            ((double *)(void *)sum->data)[i] /= degrees;
        }
        status = opscope__convert(sum, (opscope_dtype)self->dtype, outputs);
    }
    opscope_tensor_release(wide);
    opscope_tensor_release(mean);
    opscope_tensor_release(sum);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *self = backward->inputs[0];
    const opscope_argument *dim = &backward->arguments[1];
    opscope_tensor *grad = opscope__unreduce(&f, backward->gradients[0], self, dim);
    uint32_t set;
    bool all = dim->kind == OPSCOPE_ARGUMENT_NONE;
    if (opscope__dim_set("core::var_backward", all ? NULL : dim->as.integers, all ? 0 : dim->count,
                         self->dims, &set) == OPSCOPE_OK) {
        double degrees = divisor(self, set, backward->arguments[2].as.integer);
        opscope_tensor *mean = opscope__f(&f, "mean", opscope__T(self), *dim, opscope__B(true));
        opscope_tensor *away = opscope__f2(&f, "sub", self, mean);
        away = opscope__fr(&f, "mul", away, 2 / degrees);
        gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, away));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(var) = {
    .schema = "var(Tensor self, int[]? dim=None, int correction=1, bool keepdim=False) -> "
              "Tensor",
    .doc = "The variance over the dimensions in dim (all if it is absent or empty): the sum of "
           "squared deviations from the mean, divided by the number of elements minus "
           "correction. For floats; computed in float64.",
    .samples = "t(3, 4)\n"
               "t(3, 4), [0]\n"
               "t(3, 4), [1], 0, True",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
};
