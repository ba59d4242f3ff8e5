/* tensor/ops/index/argsort.c -- core::argsort: the indices of the sorted elements. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *both[OPSCOPE_OUTPUT_LIMIT];
    opscope__do_all(&f, "sort", arguments, 4, both);
    outputs[0] = opscope__keep(both[1]);
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(argsort) = {
    .schema =
        "argsort(Tensor self, int dim=-1, bool descending=False, *, bool stable=True) -> Tensor",
    .doc = "The indices (int64) that sort the elements along dim, in the order of sort.",
    .samples = "t(3, 4)\n"
               "t(3, 4), 0, True",
    .forward = forward,
    .is_composite = true,
};
