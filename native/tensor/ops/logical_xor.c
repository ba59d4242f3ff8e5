/* tensor/ops/logical_xor.c -- core::logical_xor: of truths. */
#include "tensor/ops/loops.h"

OPSCOPE__BINARY_TRUTHS(logical_xor, (a != 0) ^ (b != 0))

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {
        .loops = {OPSCOPE__ALL_LOOPS(logical_xor)}, .cost = 1, .gives_bool = true};
    return opscope__elementwise(call, &spec, arguments, 2, NULL, 0, outputs);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(logical_xor) = {
    .schema = "logical_xor(Tensor self, Tensor other) -> Tensor",
    .doc = "xor of what is not zero, as bools. Sizes broadcast, dtypes promote as in PyTorch; "
           "either argument may be a number.",
    .samples = "t(3, 4), t(4)\n"
               "i(3), i(3)",
    .forward = forward,
    .has_inplace = true,
    .takes_numbers = true,
};
