/* tensor/ops/nn/dropout.c -- core::dropout: zeroes random elements in training. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    struct opscope__formula f = {0};
    double p = arguments[1].as.real;
    if (!(p >= 0 && p <= 1)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "%s: p is %g; a probability lies within 0 and 1",
                                   opscope__call_name(call), p);
    }
    bool drops = arguments[2].as.integer != 0 && p != 0;
    outputs[0] = opscope__keep(drops ? opscope__f(&f, "native_dropout", arguments[0], arguments[1])
                                     : arguments[0].as.tensor);
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(dropout) = {
    .schema = "dropout(Tensor input, float p=0.5, bool training=True) -> Tensor",
    .doc = "In training, each element is zero with probability p, and divided by 1 - p "
           "otherwise; outside of training, input itself. Repeatable after manual_seed. "
           "Definition: Srivastava et al. 2014.",
    .samples = "t(3, 4), 0.5, False\n"
               "t(3, 4), 1.0, True",
    .forward = forward,
    .is_composite = true,
};
