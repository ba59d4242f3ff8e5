/* tensor/ops/elementwise/lerp.c -- core::lerp: linear interpolation between two tensors. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *way = opscope__f(&f, "sub", arguments[1], arguments[0]);
    way = opscope__f(&f, "mul", opscope__T(way), arguments[2]);
    outputs[0] = opscope__keep(opscope__f(&f, "add", arguments[0], opscope__T(way)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(lerp) = {
    .schema = "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
    .doc = "self + weight * (end - self): between self and end as weight goes from 0 to 1. Sizes "
           "broadcast; weight may be a number.",
    .samples = "t(3, 4), t(3, 4), 0.25\n"
               "t(3, 4), t(4), p(3, 1)",
    .forward = forward,
    .has_inplace = true,
    .takes_numbers = true,
    .is_composite = true,
};
