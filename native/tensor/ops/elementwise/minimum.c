/* tensor/ops/elementwise/minimum.c -- core::minimum: the smaller. */
#include "tensor/ops/elementwise/loops.h"
#include "tensor/ops/elementwise/minmax_backward.h"

OPSCOPE__BINARY_NUMBERS(minimum, a < b || a != a ? a : b)

OPSCOPE__FORWARD(2, 0, .loops = {OPSCOPE__ALL_LOOPS(minimum)}, .cost = 1)

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__minmax_backward(backward, "gt", gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(minimum) = {
    .schema = "minimum(Tensor self, Tensor other) -> Tensor",
    .doc = "The smaller of self and other, NaN if either is NaN. Sizes broadcast, dtypes "
           "promote as in PyTorch; either argument may be a number. Equal elements each get "
           "half of the gradient.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .elementwise = &elementwise,
    .backward = backward,
    .saves_inputs = 3,
    .has_inplace = true,
    .takes_numbers = true,
};
