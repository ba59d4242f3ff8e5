/* tensor/ops/shape/broadcast_to.c -- core::broadcast_to: repeats elements without a copy. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    outputs[0] = opscope__keep(opscope__f(&f, "expand", arguments[0], arguments[1]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(broadcast_to) = {
    .schema = "broadcast_to(Tensor self, int[] size) -> Tensor",
    .doc = "A view of self in larger sizes, like that of expand.",
    .samples = "t(3, 1), [2, 3, 4]\n"
               "t(4), [3, 4]",
    .forward = forward,
    .is_composite = true,
};
