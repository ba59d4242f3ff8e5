/* tensor/ops/reduce/logsumexp.c -- core::logsumexp: the logarithm of a sum of exponentials. */
#include <math.h>

#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *self = arguments[0].as.tensor;
    if (!opscope_dtype_is_floating((opscope_dtype)self->dtype)) {
        self = opscope__f(&f, "to", arguments[0], opscope__I(OPSCOPE_FLOAT32));
    }
    if (self != NULL && self->count == 0) { /* no elements have no maximum */
        opscope_tensor *sums = opscope__f(&f, "sum", opscope__T(opscope__f1(&f, "exp", self)),
                                          arguments[1], arguments[2]);
        outputs[0] = opscope__keep(opscope__f1(&f, "log", sums));
        return opscope__formula_end(&f, outputs, 1);
    }
    /* Subtracting the maximum, which cancels, prevents overflow; an infinite maximum would not
     * cancel. */
    opscope_tensor *still = opscope__f1(&f, "detach", self);
    opscope_tensor *top = opscope__f(&f, "amax", opscope__T(still), arguments[1], opscope__B(true));
    opscope_tensor *is_endless =
        opscope__f(&f, "eq", opscope__T(opscope__f1(&f, "abs", top)), opscope__R(INFINITY));
    top = opscope__f(&f, "masked_fill", opscope__T(top), opscope__T(is_endless), opscope__I(0));
    opscope_tensor *powers = opscope__f1(&f, "exp", opscope__f2(&f, "sub", self, top));
    opscope_tensor *sums = opscope__f1(
        &f, "log", opscope__f(&f, "sum", opscope__T(powers), arguments[1], arguments[2]));
    /* It has one element along each folded dimension, so the sum is the element itself. */
    top = opscope__f(&f, "sum", opscope__T(top), arguments[1], arguments[2]);
    outputs[0] = opscope__keep(opscope__f2(&f, "add", sums, top));
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(logsumexp) = {
    .schema = "logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
    .doc = "log(sum(exp(x))) over the dimensions in dim, without overflow; for integers and "
           "bools in float32.",
    .samples = "t(3, 4), [1]\n"
               "t(3, 4), [0, 1], True\n"
               "i(3, 4), [1]\n",
    .forward = forward,
    .is_composite = true,
};
