/* tensor/ops/shape/strided_view_backward.c -- core::strided_view_backward: the gradient through
 * strided_view. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/shape/strided.h"

/* Elements that share memory are added up, in row-major order. */
#define ADD(name, type)                                                                            \
    static void name(char *to, const int64_t *to_strides, const char *from,                        \
                     const int64_t *from_strides, int dims, const int64_t *sizes)                  \
    {                                                                                              \
        if (dims == 0) {                                                                           \
            *(type *)(void *)to += *(const type *)(const void *)from;                              \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < sizes[0]; i++) {                                                   \
            name(to + i * to_strides[0] * (int64_t)sizeof(type), to_strides + 1,                   \
                 from + i * from_strides[0] * (int64_t)sizeof(type), from_strides + 1, dims - 1,   \
                 sizes + 1);                                                                       \
        }                                                                                          \
    }

ADD(add_float32, float)
ADD(add_float64, double)

static int add(const char *name, const opscope_tensor *to, const opscope_tensor *from)
{
    if (!opscope__overlaps_itself(to)) {
        return opscope__copy(to, from);
    }
    if (to->dtype != OPSCOPE_FLOAT32 && to->dtype != OPSCOPE_FLOAT64) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s", name,
                                   opscope_dtype_name((opscope_dtype)to->dtype));
    }
    (to->dtype == OPSCOPE_FLOAT32 ? add_float32 : add_float64)(to->data, opscope__strides(to),
                                                               from->data, opscope__strides(from),
                                                               to->dims, opscope__sizes(to));
    return OPSCOPE_OK;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *grad = arguments[0].as.tensor;
    opscope_tensor *whole, *part;
    int status = opscope__zeros_strided(name, (int)arguments[1].count, arguments[1].as.integers,
                                        &arguments[2], (opscope_dtype)grad->dtype, &whole);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__strided_part(name, whole, grad->dims, opscope__sizes(grad), &arguments[3],
                                   arguments[4].as.integer, &part);
    if (status == OPSCOPE_OK) {
        status = add(name, part, grad);
        opscope_tensor_release(part);
    }
    return opscope__tensor_finish(status, whole, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *grad = backward->inputs[0];
    gradients[0] = opscope__keep(opscope__f(&f, "strided_view", opscope__T(backward->gradients[0]),
                                            backward->arguments[2],
                                            opscope__L(opscope__sizes(grad), grad->dims),
                                            backward->arguments[3], backward->arguments[4]));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(strided_view_backward) = {
    .schema =
        "strided_view_backward(Tensor grad_output, int[] size, int[] base_stride, int[] stride, "
        "int offset) -> Tensor",
    .doc = "Zeros of those sizes, with the strides base_stride, to which grad_output is added "
           "at the elements of strided_view: the gradient through it.",
    .samples = "t(2, 2), [3, 4], [4, 1], [4, 2], 1\n"
               "t(3, 2), [4], [1], [1, 1], 0",
    .forward = forward,
    .backward = backward,
};
