/* tensor/ops/elementwise/isclose.c -- core::isclose: tests whether numbers are approximately
 * equal. */
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/elementwise.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    (void)call;
    struct opscope__formula f = {0};
    opscope_tensor *same = opscope__f(&f, "eq", arguments[0], arguments[1]);
    /* The difference of integers could overflow, and bools have none. */
    opscope_argument self = arguments[0], other = arguments[1];
    if (!opscope_dtype_is_floating(opscope__dtype_of(arguments, 2, 0))) {
        self = opscope__T(opscope__f(&f, "to", self, opscope__I(OPSCOPE_FLOAT64)));
        other = opscope__T(opscope__f(&f, "to", other, opscope__I(OPSCOPE_FLOAT64)));
    }
    opscope_tensor *away = opscope__f1(&f, "abs", opscope__f(&f, "sub", self, other));
    opscope_tensor *bound =
        opscope__f(&f, "mul", opscope__T(opscope__f(&f, "abs", other)), arguments[2]);
    bound = opscope__f(&f, "add", opscope__T(bound), arguments[3]);
    /* Only itself is close to an infinite number. */
    opscope_tensor *is_near = opscope__f2(&f, "le", away, bound);
    is_near = opscope__f2(&f, "logical_and", is_near, opscope__f1(&f, "isfinite", away));
    is_near = opscope__f2(&f, "logical_or", is_near, same);
    if (arguments[4].as.integer != 0) {
        opscope_tensor *both = opscope__f2(&f, "logical_and", opscope__f(&f, "isnan", arguments[0]),
                                           opscope__f(&f, "isnan", arguments[1]));
        is_near = opscope__f2(&f, "logical_or", is_near, both);
    }
    outputs[0] = opscope__keep(is_near);
    return opscope__formula_end(&f, outputs, 1);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(isclose) = {
    .schema =
        "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> "
        "Tensor",
    .doc = "True where |self - other| <= atol + rtol * |other|, or where the two are equal, as "
           "bools. Sizes broadcast.",
    .samples = "t(3, 4), t(3, 4)\n"
               "t(3, 4), t(4), 0.1, 0.5\n"
               "i(3), i(3)\n"
               "b(3), b(3)\n"
               "t(3) * float('nan'), t(3) * float('nan'), 0, 0, True",
    .forward = forward,
    .is_composite = true,
};
