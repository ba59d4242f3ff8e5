/* tensor/ops/nn/mse_loss.c -- core::mse_loss: the mean squared error. */
#include "tensor/ops/nn/loss.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    opscope_tensor *away = opscope__f(&f, "sub", arguments[0], arguments[1]);
    opscope_tensor *losses = opscope__f(&f, "pow", opscope__T(away), opscope__I(2));
    outputs[0] =
        opscope__keep(opscope__reduced_loss(&f, opscope__call_name(call), losses, &arguments[2]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(mse_loss) = {
    .schema = "mse_loss(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
    .doc = "The squared difference of input and target, which broadcast: its mean or its sum, "
           "or with reduction 'none' the loss of each element.",
    .samples = "t(3, 4), t(3, 4)\n"
               "t(3, 4), t(3, 4), reduction='sum'\n"
               "t(3, 4), t(3, 4), reduction='none'",
    .forward = forward,
    .is_composite = true,
};
