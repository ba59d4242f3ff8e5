/* tensor/ops/shape/expand.c -- core::expand: repeats dimensions of size one without a copy. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor;
    if (arguments[1].count > OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: at most %d dimensions, not %u", name,
                                   OPSCOPE_DIM_LIMIT, arguments[1].count);
    }
    int dims = (int)arguments[1].count;
    int missing = dims - self->dims;
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    bool fits = missing >= 0;
    for (int i = 0; i < dims && fits; i++) {
        int64_t own = i < missing ? 1 : opscope__sizes(self)[i - missing];
        int64_t wanted = arguments[1].as.integers[i];
        sizes[i] = wanted == -1 && i >= missing ? own : wanted;
        strides[i] = own == 1 && sizes[i] != 1 ? 0
                     : i < missing             ? 0
                                               : opscope__strides(self)[i - missing];
        fits = sizes[i] >= 0 && (own == 1 || own == sizes[i]);
    }
    if (!fits) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: sizes %s cannot become %s: only dimensions of size 1 and new "
            "ones in front can grow; -1 keeps a size",
            name, opscope__shape_text(self).text,
            opscope__sizes_text(dims, arguments[1].as.integers).text);
    }
    return opscope__tensor_view(self, dims, sizes, strides, 0, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    gradients[0] = opscope__keep(opscope__sum_to(&f, grad, backward->inputs[0]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(expand) = {
    .schema = "expand(Tensor self, int[] size) -> Tensor",
    .doc = "A view in which dimensions of size 1 are repeated, and new ones come in front; -1 "
           "keeps a size. Its elements share memory, so it cannot be written in place.",
    .samples = "t(3, 1), [2, 3, 4]\n"
               "t(3), [-1]",
    .forward = forward,
    .backward = backward,
    .is_view = true,
};
