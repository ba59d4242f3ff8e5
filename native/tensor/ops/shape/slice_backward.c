/* tensor/ops/shape/slice_backward.c -- core::slice_backward: the gradient through slice. */
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/ops/shape/slice.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *whole, *part = NULL;
    struct opscope__slice slice;
    int dims = (int)arguments[1].count;
    int status = opscope__slice_of(name, dims, arguments[1].as.integers, arguments + 2, &slice);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(dims, arguments[1].as.integers, grad->dtype, &whole);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(whole, &opscope__I(0));
    status = opscope__slice_view(whole, &slice, &part);
    if (status == OPSCOPE_OK && !opscope__same_sizes(part, grad)) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "%s: a gradient of sizes %s for a slice of sizes %s; they must be "
            "equal",
            name, opscope__shape_text(grad).text, opscope__shape_text(part).text);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__copy(part, grad);
    }
    opscope_tensor_release(part);
    return opscope__tensor_finish(status, whole, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__f(&f, "slice", opscope__T(more), backward->arguments[2],
                                            backward->arguments[3], backward->arguments[4],
                                            backward->arguments[5]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(slice_backward) = {
    .schema = "slice_backward(Tensor grad_output, int[] sizes, int dim, int? start, int? "
              "end, int step) -> Tensor",
    .doc = "Zeros of those sizes with grad_output in a slice of them: the gradient through "
           "slice.",
    .samples = "t(2, 4), [5, 4], 0, 1, 4, 2",
    .forward = forward,
    .backward = backward,
};
