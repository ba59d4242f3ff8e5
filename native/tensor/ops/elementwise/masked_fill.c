/* tensor/ops/elementwise/masked_fill.c -- core::masked_fill: a number where a mask is true. */
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__TERNARY(fill_float32, float, uint8_t, float, a != 0 ? b : c)
OPSCOPE__TERNARY(fill_float64, double, uint8_t, double, a != 0 ? b : c)
OPSCOPE__TERNARY(fill_int32, int32_t, uint8_t, int32_t, a != 0 ? b : c)
OPSCOPE__TERNARY(fill_int64, int64_t, uint8_t, int64_t, a != 0 ? b : c)
OPSCOPE__TERNARY(fill_uint8, uint8_t, uint8_t, uint8_t, a != 0 ? b : c)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__ALL_LOOPS(fill)}, .cost = 2, .apart = 1};
    /* The number does not affect the dtype. */
    const opscope_argument *value = &arguments[2];
    opscope_dtype dtype = (opscope_dtype)arguments[0].as.tensor->dtype;
    int status = opscope__check_number(opscope__call_name(call), value, dtype);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t whole = value->as.integer;
    if (value->kind == OPSCOPE_ARGUMENT_FLOAT && dtype == OPSCOPE_BOOL) {
        whole = value->as.real != 0;
    } else if (value->kind == OPSCOPE_ARGUMENT_FLOAT && !opscope_dtype_is_floating(dtype)) {
        whole = (int64_t)value->as.real;
    }
    opscope_argument operands[] = {arguments[1], *value, arguments[0]};
    if (!opscope_dtype_is_floating(dtype)) {
        operands[1] = dtype == OPSCOPE_BOOL ? opscope__B(whole != 0) : opscope__I(whole);
    }
    return opscope__elementwise(call, &spec, operands, 3, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *part = opscope__f(&f, "where", backward->arguments[1], opscope__I(0),
                                      opscope__T(backward->gradients[0]));
    gradients[0] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(masked_fill) = {
    .schema = "masked_fill(Tensor self, Tensor mask, Scalar value) -> Tensor",
    .doc = "value where mask (bools) is true, else self, in the dtype of self. Both broadcast. "
           "ValueError if the dtype cannot hold the value.",
    .samples = "t(3, 4), b(3, 4), 2.5\n"
               "t(3, 4), b(4), -1\n"
               "i(3), b(3), 2.5",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
    .has_inplace = true,
};
