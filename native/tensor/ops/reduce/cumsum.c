/* tensor/ops/reduce/cumsum.c -- core::cumsum: cumulative sums. */
#include "tensor/ops/reduce/scan.h"

OPSCOPE__SCAN(cumsum, 0, s + a)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__scan_forward(call, cumsum, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    opscope_argument dim = backward->arguments[1];
    if (backward->inputs[0]->dims == 0) {
        gradients[0] = opscope__keep(grad);
        return opscope__formula_end(&f, gradients, backward->input_count);
    }
    opscope_tensor *turned =
        opscope__f(&f, "slice", opscope__T(grad), dim, opscope__N, opscope__N, opscope__I(-1));
    opscope_tensor *sums = opscope__f(&f, "cumsum", opscope__T(turned), dim);
    gradients[0] = opscope__keep(
        opscope__f(&f, "slice", opscope__T(sums), dim, opscope__N, opscope__N, opscope__I(-1)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(cumsum) = {
    .schema = "cumsum(Tensor self, int dim) -> Tensor",
    .doc = "The sum of the elements up to and including each one along dim. Integers and bools "
           "sum in int64.",
    .samples = "t(3, 4), 1\n"
               "t(3, 4), 0\n"
               "t(), 0",
    .forward = forward,
    .backward = backward,
};
