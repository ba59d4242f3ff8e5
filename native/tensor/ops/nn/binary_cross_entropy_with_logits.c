/* tensor/ops/nn/binary_cross_entropy_with_logits.c -- core::binary_cross_entropy_with_logits: the
 * loss of scores for probabilities. */
#include "tensor/core/shape.h"
#include "tensor/dispatch/formula.h"
#include "tensor/ops/nn/loss.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    if (!opscope__same_sizes(arguments[0].as.tensor, arguments[1].as.tensor)) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE, "%s: input of sizes %s, target of %s: they must be equal",
            opscope__call_name(call), opscope__shape_text(arguments[0].as.tensor).text,
            opscope__shape_text(arguments[1].as.tensor).text);
    }
    /* log(1 + exp(x)) - x * target */
    opscope_tensor *zero = opscope__f(&f, "fill", arguments[0], opscope__I(0));
    opscope_tensor *soft = opscope__f(&f, "logaddexp", arguments[0], opscope__T(zero));
    opscope_tensor *losses =
        opscope__f2(&f, "sub", soft, opscope__f(&f, "mul", arguments[0], arguments[1]));
    outputs[0] =
        opscope__keep(opscope__reduced_loss(&f, opscope__call_name(call), losses, &arguments[2]));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(binary_cross_entropy_with_logits) = {
    .schema =
        "binary_cross_entropy_with_logits(Tensor input, Tensor target, *, str reduction='mean') -> Tensor",
    .doc = "The cross entropy of sigmoid(input) and the probabilities target, of equal sizes: "
           "its mean or its sum, or with reduction 'none' the loss of each element.",
    .samples = "t(3, 4), p(3, 4) - 0.5\n"
               "t(3, 4), p(3, 4) - 0.5, reduction='none'",
    .forward = forward,
    .is_composite = true,
};
