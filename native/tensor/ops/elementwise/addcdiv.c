/* tensor/ops/elementwise/addcdiv.c -- core::addcdiv: a tensor plus the quotient of two others. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *part = opscope__f(&f, "div", arguments[1], arguments[2]);
    outputs[0] = opscope__keep(opscope__f(&f, "add", arguments[0], opscope__T(part), arguments[3]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(addcdiv) = {
    .schema = "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = "self + value * tensor1 / tensor2. Sizes broadcast.",
    .samples = "t(3, 4), t(3, 4), p(3, 4)\n"
               "t(3, 4), t(4), p(3, 1), value=0.5",
    .forward = forward,
    .has_inplace = true,
    .is_composite = true,
};
