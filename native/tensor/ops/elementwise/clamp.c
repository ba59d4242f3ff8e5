/* tensor/ops/elementwise/clamp.c -- core::clamp: limits elements to a range. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

#define CLAMPED ((a < b) ? (b < c ? b : c) : (a > c) ? c : a)

OPSCOPE__TERNARY(clamp_float32, float, float, float, CLAMPED)
OPSCOPE__TERNARY(clamp_float64, double, double, double, CLAMPED)
OPSCOPE__TERNARY(clamp_int32, int32_t, int32_t, int32_t, CLAMPED)
OPSCOPE__TERNARY(clamp_int64, int64_t, int64_t, int64_t, CLAMPED)
OPSCOPE__TERNARY(clamp_uint8, uint8_t, uint8_t, uint8_t, CLAMPED)
OPSCOPE__BINARY_NUMBERS(least, a < b ? b : a)
OPSCOPE__BINARY_NUMBERS(most, a > b ? b : a)
OPSCOPE__BINARY(nowhere_float32, float, float, a + b)
OPSCOPE__BINARY(nowhere_float64, double, double, a + b)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise both = {.loops = {OPSCOPE__NUMBER_LOOPS(clamp)},
                                                     .cost = 1};
    static const struct opscope__elementwise least = {.loops = {OPSCOPE__NUMBER_LOOPS(least)},
                                                      .cost = 1};
    static const struct opscope__elementwise nowhere = {.loops = {OPSCOPE__FLOAT_LOOPS(nowhere)},
                                                        .cost = 1};
    static const struct opscope__elementwise most = {.loops = {OPSCOPE__NUMBER_LOOPS(most)},
                                                     .cost = 1};
    for (int i = 1; i < 3; i++) {
        if (arguments[i].kind == OPSCOPE_ARGUMENT_FLOAT && isnan(arguments[i].as.real)) {
            return opscope__elementwise(call, &nowhere,
                                        (const opscope_argument[]){arguments[0], arguments[i]}, 2,
                                        NULL, 0, outputs);
        }
    }
    bool has_least = arguments[1].kind != OPSCOPE_ARGUMENT_NONE;
    bool has_most = arguments[2].kind != OPSCOPE_ARGUMENT_NONE;
    if (has_least && has_most) {
        return opscope__elementwise(call, &both, arguments, 3, NULL, 0, outputs);
    }
    if (!has_least && !has_most) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: min or max must be given",
                                   opscope__call_name(call));
    }
    const opscope_argument operands[] = {arguments[0], has_least ? arguments[1] : arguments[2]};
    return opscope__elementwise(call, has_least ? &least : &most, operands, 2, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *self = backward->inputs[0], *grad = backward->gradients[0];
    for (int i = 1; i < 3; i++) {
        if (backward->arguments[i].kind != OPSCOPE_ARGUMENT_NONE) {
            opscope_tensor *inside =
                opscope__f(&f, i == 1 ? "ge" : "le", opscope__T(self), backward->arguments[i]);
            grad = opscope__f2(&f, "mul", grad, inside);
        }
    }
    gradients[0] = opscope__keep(grad);
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(clamp) = {
    .schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    .doc = "Each element limited to the range from min to max; NaN stays. If min exceeds max, "
           "the result is max; with a NaN bound it is NaN. @s \"%s: min or max must be given\" @t "
           "\"%s: expected min, max, or both\"",
    .samples = "t(3, 4), -0.5, 0.5\n"
               "t(3, 4), None, 0.5",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
    .has_inplace = true,
};
