/* tensor/ops/elementwise/addcmul.c -- core::addcmul: a tensor plus the product of two others. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *part = opscope__f(&f, "mul", arguments[1], arguments[2]);
    outputs[0] = opscope__keep(opscope__f(&f, "add", arguments[0], opscope__T(part), arguments[3]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(addcmul) = {
    .schema = "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = "self + value * tensor1 * tensor2. Sizes broadcast.",
    .samples = "t(3, 4), t(3, 4), p(3, 4)\n"
               "t(3, 4), t(4), p(3, 1), value=0.5",
    .forward = forward,
    .has_inplace = true,
    .is_composite = true,
};
