/* tensor/ops/reduce/sum_to_size.c -- core::sum_to_size: reverses broadcasting. */
#include <string.h>

#include "tensor/ops/reduce/reduction.h"

OPSCOPE__FOLD_SUM(sum_float32, float, double, float, float, s)
OPSCOPE__FOLD_SUM(sum_float64, double, double, double, double, s)

static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE__FOLDED(sum_float32, 0, 1),
    [OPSCOPE_FLOAT64] = OPSCOPE__FOLDED(sum_float64, 0, 1),
};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *self = arguments[0].as.tensor;
    int dims = (int)arguments[1].count, missing = self->dims - dims;
    const int64_t *sizes = arguments[1].as.integers;
    uint32_t set = 0;
    bool fits = missing >= 0;
    for (int i = 0; i < self->dims && fits; i++) {
        int64_t wanted = i < missing ? 1 : sizes[i - missing];
        fits = wanted == 1 || wanted == opscope__sizes(self)[i];
        set |= wanted == 1 && (i < missing || opscope__sizes(self)[i] != 1) ? 1u << i : 0;
    }
    if (!fits) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "%s: sizes %s do not broadcast to %s, so there is no way back",
            name, opscope__sizes_text(dims, sizes).text, opscope__shape_text(self).text);
    }
    if (reductions[self->dtype].rows == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s", name,
                                   opscope_dtype_name(self->dtype));
    }
    opscope_tensor *sum;
    int status = opscope__reduce(&reductions[self->dtype], self, set, true,
                                 (opscope_dtype)self->dtype, &sum);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__tensor_view(sum, dims, sizes, NULL, 0, outputs);
    opscope_tensor_release(sum);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    gradients[0] = opscope__keep(opscope__f(&f, "expand", opscope__T(backward->gradients[0]),
                                            opscope__L(opscope__sizes(self), self->dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sum_to_size) = {
    .schema = "sum_to_size(Tensor self, int[] size) -> Tensor",
    .doc = "The sum over the dimensions that broadcasting from sizes to self's sizes added or "
           "expanded. For floats. @s \"%s: sizes %s do not broadcast to %s, so there is no way "
           "back\" @t \"%s: sizes %s do not broadcast to %s, which this would reverse\"",
    .samples = "t(3, 4), [4]\n"
               "t(3, 4), [3, 1]",
    .forward = forward,
    .backward = backward,
};
