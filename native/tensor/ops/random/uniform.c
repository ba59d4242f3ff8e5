/* tensor/ops/random/uniform.c -- core::uniform: uniformly distributed random numbers. */
#include "tensor/ops/random/random_fill.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    double from = arguments[1].as.real, to = arguments[2].as.real;
    if (!(from <= to)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: from %g to %g is no interval",
                                   opscope__call_name(call), from, to);
    }
    int status = opscope__random_like(call, arguments[0].as.tensor, outputs);
    if (status == OPSCOPE_OK) {
        opscope__stretch stretch = opscope__stretch_take((uint64_t)outputs[0]->count);
        for (int64_t i = 0; i < outputs[0]->count; i++) {
            opscope__random_put(outputs[0], i, from + (to - from) * opscope__draw_unit(&stretch));
        }
    }
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__random_backward(backward, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(uniform) = {
    .schema = "uniform(Tensor self, float low=0.0, float high=1.0) -> Tensor",
    .doc = "Numbers drawn uniformly from [low, high) in self's sizes and dtype; uniform_ writes "
           "them into self. Repeatable after manual_seed.",
    .samples = "t(3, 4), 2.0, 2.0",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
};
