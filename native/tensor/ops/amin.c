/* tensor/ops/amin.c -- core::amin: the smallest over dimensions. */
#include "tensor/ops/reduced.h"

OPSCOPE__FOLD(amin_float32, float, double, float, INFINITY, a < s || a != a ? a : s, a < s || a != a ? a : s, float, s)
OPSCOPE__FOLD(amin_float64, double, double, double, INFINITY, a < s || a != a ? a : s, a < s || a != a ? a : s, double, s)
OPSCOPE__FOLD(amin_int32, int32_t, int64_t, int32_t, INT32_MAX, a < s ? a : s, a < s ? a : s, int32_t, s)
OPSCOPE__FOLD(amin_int64, int64_t, int64_t, int64_t, INT64_MAX, a < s ? a : s, a < s ? a : s, int64_t, s)
OPSCOPE__FOLD(amin_uint8, uint8_t, int64_t, uint8_t, UINT8_MAX, a < s ? a : s, a < s ? a : s, uint8_t, s)

static const struct opscope__reduction reductions[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE__FOLDED(amin_float32, 0x7FF0000000000000u, 1),
    [OPSCOPE_FLOAT64] = OPSCOPE__FOLDED(amin_float64, 0x7FF0000000000000u, 1),
    [OPSCOPE_INT32] = OPSCOPE__FOLDED(amin_int32, (uint64_t)INT64_MAX, 1),
    [OPSCOPE_INT64] = OPSCOPE__FOLDED(amin_int64, (uint64_t)INT64_MAX, 1),
    [OPSCOPE_UINT8] = OPSCOPE__FOLDED(amin_uint8, (uint64_t)INT64_MAX, 1),
    [OPSCOPE_BOOL] = OPSCOPE__FOLDED(amin_uint8, (uint64_t)INT64_MAX, 1),
};

static const opscope_dtype outputs_as[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = OPSCOPE_FLOAT32,
    [OPSCOPE_FLOAT64] = OPSCOPE_FLOAT64,
    [OPSCOPE_INT32] = OPSCOPE_INT32,
    [OPSCOPE_INT64] = OPSCOPE_INT64,
    [OPSCOPE_UINT8] = OPSCOPE_UINT8,
    [OPSCOPE_BOOL] = OPSCOPE_BOOL,
};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor;
    if (self->count == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: nothing has no smallest element (sizes %s)",
                                   opscope__call_name(call), opscope__shape_text(self).text);
    }
    return opscope__reduce_arguments(call, reductions, outputs_as, arguments, NULL, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    opscope_tensor *grad = opscope__unreduce(&f, backward->gradients[0], self, &backward->arguments[1]);
    opscope_tensor *best =
        opscope__unreduce(&f, backward->saved[0], self, &backward->arguments[1]);
    opscope_tensor *is_best = opscope__f2(&f, "eq", backward->inputs[0], best);
    opscope_tensor *ties =
        opscope__f(&f, "sum", opscope__T(is_best), backward->arguments[1], opscope__B(true));
    opscope_tensor *share = opscope__f2(&f, "div", is_best, ties);
    gradients[0] = opscope__keep(opscope__f2(&f, "mul", grad, share));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(amin) = {
    .schema = "amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "The smallest element over the dimensions in dim (all where it is absent or empty), "
           "NaN where there is one. Equal elements share the gradient.",
    .samples = "t(3, 4)\n" "t(3, 4), [1], True",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .saves_outputs = 1,
};
