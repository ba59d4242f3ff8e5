/* tensor/ops/sub.c -- core::sub: the difference. */
#include "tensor/formula.h"
#include "tensor/ops/loops.h"

OPSCOPE__BINARY_NUMBERS(sub, a - b * n)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    static const struct opscope__elementwise spec = {.loops = {OPSCOPE__NUMBER_LOOPS(sub)},
                                                     .cost = 1};
    return opscope__elementwise(call, &spec, arguments, 2, &arguments[2], 1, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__sum_to(&f, grad, backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *scaled = opscope__f(&f, "mul", opscope__T(grad), backward->arguments[2]);
        scaled = opscope__f1(&f, "neg", scaled);
        gradients[1] = opscope__keep(opscope__sum_to(&f, scaled, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(sub) = {
    .schema = "sub(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .doc = "self - alpha * other. Sizes broadcast, dtypes promote as in PyTorch; either argument "
           "may be a number. Not for bools: use logical_xor.",
    .samples = "t(3, 4), t(4)\n"
               "t(3, 1), t(4), alpha=2\n"
               "i(3), i(3)",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
    .takes_numbers = true,
};
