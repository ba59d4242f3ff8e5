/* tensor/ops/reduce/count_nonzero.c -- core::count_nonzero: the number of elements that are not
 * zero. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *truths = opscope__f(&f, "ne", arguments[0], opscope__I(0));
    outputs[0] = opscope__keep(opscope__f(&f, "sum", opscope__T(truths), arguments[1]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(count_nonzero) = {
    .schema = "count_nonzero(Tensor self, int[]? dim=None) -> Tensor",
    .doc = "The number of elements that are not zero over the dimensions in dim (all if it is "
           "absent), in int64.",
    .samples = "i(3, 4)\n"
               "i(3, 4), [0]\n"
               "t(3)",
    .forward = forward,
    .is_composite = true,
};
