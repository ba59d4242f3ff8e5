/* tensor/ops/elementwise/add.c -- core::add: the sum. */
#include "tensor/ops/elementwise/add_backward.h"
#include "tensor/ops/elementwise/loops.h"

OPSCOPE__BINARY_SCALED(add_float32, float, a + b, a + b * n)
OPSCOPE__BINARY_SCALED(add_float64, double, a + b, a + b * n)
OPSCOPE__BINARY_INTEGERS(add, a + b * n)
OPSCOPE__BINARY(add_bool, uint8_t, uint8_t, a | (b & n))

OPSCOPE__FORWARD(2, 1, .loops = {OPSCOPE__NUMBER_LOOPS(add), [OPSCOPE_BOOL] = add_bool}, .cost = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__add_backward(backward, false, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(add) = {
    .schema = "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .doc = "self + alpha * other. Sizes broadcast, dtypes promote as in PyTorch; either "
           "argument may be a number. For bools: logical or.",
    .samples = "t(3, 4), t(4)\n"
               "t(3, 1), t(4), alpha=2\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .has_inplace = true,
    .takes_numbers = true,
};
