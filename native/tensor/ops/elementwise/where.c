/* tensor/ops/elementwise/where.c -- core::where: selects between two tensors. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__TERNARY(where_float32, float, uint8_t, float, a != 0 ? b : c)
OPSCOPE__TERNARY(where_float64, double, uint8_t, double, a != 0 ? b : c)
OPSCOPE__TERNARY(where_int32, int32_t, uint8_t, int32_t, a != 0 ? b : c)
OPSCOPE__TERNARY(where_int64, int64_t, uint8_t, int64_t, a != 0 ? b : c)
OPSCOPE__TERNARY(where_uint8, uint8_t, uint8_t, uint8_t, a != 0 ? b : c)

OPSCOPE__FORWARD(3, 0, .loops = {OPSCOPE__ALL_LOOPS(where)}, .cost = 2, .apart = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_argument condition = backward->arguments[0];
    if (backward->wanted[1]) {
        opscope_tensor *part = opscope__f(&f, "where", condition, opscope__T(grad), opscope__I(0));
        gradients[1] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[1]));
    }
    if (backward->wanted[2]) {
        opscope_tensor *part = opscope__f(&f, "where", condition, opscope__I(0), opscope__T(grad));
        gradients[2] = opscope__keep(opscope__sum_to(&f, part, backward->inputs[2]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(where) = {
    .schema = "where(Tensor condition, Tensor self, Tensor other) -> Tensor",
    .doc = "self where condition is true, else other. All three broadcast; self and other "
           "promote, and either may be a number.",
    .samples = "b(3, 4), t(3, 4), t(4)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 1,
    .takes_numbers = true,
};
