/* tensor/ops/shape/unfold_backward.c -- core::unfold_backward: adds windows at their positions. */
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/ops/shape/unfold.h"

/* Adds the elements of `grad` one after another to those of `windows`, which share memory. */
#define ADD(name, type)                                                                            \
    static void name(const opscope_tensor *windows, const opscope_tensor *grad)                    \
    {                                                                                              \
        const int last = grad->dims - 1;                                                           \
        const int64_t width = opscope__sizes(grad)[last], step = opscope__strides(windows)[last];  \
        for (int64_t row = 0; row < grad->count / width; row++) {                                  \
            int64_t rest = row;                                                                    \
            type *to = (type *)(void *)windows->data;                                              \
            const type *from = (const type *)(const void *)grad->data + row * width;               \
            for (int i = last - 1; i >= 0; i--) {                                                  \
                to += rest % opscope__sizes(grad)[i] * opscope__strides(windows)[i];               \
                rest /= opscope__sizes(grad)[i];                                                   \
            }                                                                                      \
            for (int64_t j = 0; j < width; j++) {                                                  \
                to[j * step] += from[j];                                                           \
            }                                                                                      \
        }                                                                                          \
    }

ADD(add_float32, float)
ADD(add_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *made, *windows = NULL, *flat = NULL;
    int status = opscope__tensor_empty((int)arguments[1].count, arguments[1].as.integers,
                                       (opscope_dtype)grad->dtype, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(made, &opscope__I(0));
    status = opscope__unfolded(name, made, arguments + 2, &windows);
    if (status == OPSCOPE_OK &&
        (!opscope__same_sizes(windows, grad) ||
         (grad->dtype != OPSCOPE_FLOAT32 && grad->dtype != OPSCOPE_FLOAT64))) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: a %s gradient of sizes %s; the windows of %s are floats of sizes %s", name,
            opscope_dtype_name((opscope_dtype)grad->dtype), opscope__shape_text(grad).text,
            opscope__shape_text(made).text, opscope__shape_text(windows).text);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(grad, &flat);
    }
    if (status == OPSCOPE_OK) {
        if (grad->count > 0) {
            (grad->dtype == OPSCOPE_FLOAT32 ? add_float32 : add_float64)(windows, flat);
        }
        outputs[0] = opscope_tensor_retain(made);
    }
    opscope_tensor_release(windows);
    opscope_tensor_release(flat);
    opscope_tensor_release(made);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_argument *a = backward->arguments;
    gradients[0] = opscope__keep(
        opscope__f(&f, "unfold", opscope__T(backward->gradients[0]), a[2], a[3], a[4]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(unfold_backward) = {
    .schema =
        "unfold_backward(Tensor grad_output, int[] sizes, int dimension, int size, int step) -> Tensor",
    .doc = "Zeros of those sizes with each window of grad_output added at its position: the "
           "gradient through unfold. For floats.",
    .samples = "t(3, 3), [7], 0, 3, 2\n"
               "t(4, 4, 2), [5, 4], 0, 2, 1",
    .forward = forward,
    .backward = backward,
};
