/* tensor/ops/random/bernoulli.c -- core::bernoulli: random zeros and ones. */
#include "tensor/ops/random/random_fill.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *made = NULL, *chances = NULL;
    bool has_p = arguments[1].kind != OPSCOPE_ARGUMENT_NONE;
    int status = opscope__random_like(call, self, &made);
    if (status == OPSCOPE_OK) {
        status = opscope__convert(self, OPSCOPE_FLOAT64, &chances);
    }
    opscope__stretch stretch = opscope__stretch_take((uint64_t)self->count);
    for (int64_t i = 0; status == OPSCOPE_OK && i < self->count; i++) {
        double p = has_p ? arguments[1].as.real : ((const double *)(void *)chances->data)[i];
        if (!(p >= 0 && p <= 1)) {
            status = opscope_tensor_fail(
                OPSCOPE_ERROR_VALUE,
                "%s: %g is no probability; expected numbers within 0 and 1 (sizes %s)", name, p,
                opscope__shape_text(self).text);
        } else {
            opscope__random_put(made, i, opscope__draw_unit(&stretch) < p);
        }
    }
    opscope_tensor_release(chances);
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    return opscope__random_backward(backward, gradients);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(bernoulli) = {
    .schema = "bernoulli(Tensor self, float? p=None) -> Tensor",
    .doc = "1 with the probability in each element of self, or with probability p, else 0, in "
           "self's dtype; bernoulli_ writes them into self. Repeatable after manual_seed.",
    .samples = "(c(3, 4) > 1) * 1.0\n"
               "t(3, 4), 1.0",
    .forward = forward,
    .backward = backward,
    .has_inplace = true,
};
