/* tensor/ops/nn/softplus.c -- core::softplus: a smooth approximation of relu. */
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *scaled = opscope__f(&f, "mul", arguments[0], arguments[1]);
    opscope_tensor *zero = opscope__f(&f, "fill", opscope__T(scaled), opscope__I(0));
    opscope_tensor *sum = opscope__f(&f, "logaddexp", opscope__T(scaled), opscope__T(zero));
    opscope_tensor *is_straight = opscope__f(&f, "gt", opscope__T(scaled), arguments[2]);
    opscope_tensor *curve = opscope__f(&f, "div", opscope__T(sum), arguments[1]);
    outputs[0] = opscope__keep(
        opscope__f(&f, "where", opscope__T(is_straight), arguments[0], opscope__T(curve)));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(softplus) = {
    .schema = "softplus(Tensor self, float beta=1.0, float threshold=20.0) -> Tensor",
    .doc = "log(1 + exp(beta * x)) / beta for each element x; x itself if beta * x exceeds "
           "threshold.",
    .samples = "t(3, 4)\n"
               "t(3, 4) * 30, 2.0",
    .forward = forward,
    .is_composite = true,
};
