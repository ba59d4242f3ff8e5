/* tensor/ops/minimum.c -- core::minimum: the smaller. */
#include "tensor/ops/chosen.h"
#include "tensor/ops/loops.h"

OPSCOPE__BINARY_NUMBERS(minimum, a < b || a != a ? a : b)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {OPSCOPE__ALL_LOOPS(minimum)},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__chosen_backward(backward, "gt", gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(minimum) = {
    .schema = "minimum(Tensor self, Tensor other) -> Tensor",
    .doc = "The smaller of self and other, NaN where one is NaN. Sizes broadcast, dtypes promote "
           "as in PyTorch; either argument may be a number. Where both are equal each has half of "
           "the gradient.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .has_inplace = true,
    .takes_numbers = true,
};
