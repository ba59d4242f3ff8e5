/* tensor/ops/reduce/cumprod.c -- core::cumprod: cumulative products. */
#include "tensor/ops/reduce/scan.h"

OPSCOPE__SCAN(cumprod, 1, s *a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__scan_forward(call, cumprod, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    gradients[0] =
        opscope__keep(opscope__f(&f, "cumprod_backward", opscope__T(backward->gradients[0]),
                                 opscope__T(backward->inputs[0]), backward->arguments[1]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cumprod) = {
    .schema = "cumprod(Tensor self, int dim) -> Tensor",
    .doc = "The product of the elements up to and including each one along dim. Integers and "
           "bools multiply in int64.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0\n"
               "i(3, 4), 0\n"
               "t(), 0",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 1,
};
