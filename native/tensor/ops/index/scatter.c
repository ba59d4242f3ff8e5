/* tensor/ops/index/scatter.c -- core::scatter: writes elements at positions given by indices. */
#include "tensor/ops/index/scatter.h"

#define PUT(name, type)                                                                            \
    static void name(char *out, const char *in, const int64_t *index, int64_t count, int64_t step, \
                     int64_t stride, int64_t from)                                                 \
    {                                                                                              \
        for (int64_t j = 0; j < count; j++) {                                                      \
            ((type *)(void *)out)[j * step + index[j] * stride] =                                  \
                ((const type *)(const void *)in)[j * from];                                        \
        }                                                                                          \
    }

PUT(put_8, uint8_t)
PUT(put_16, uint16_t)
PUT(put_32, uint32_t)
PUT(put_64, uint64_t)

static const opscope__scatter_loop placings[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = put_32, [OPSCOPE_FLOAT64] = put_64,  [OPSCOPE_INT32] = put_32,
    [OPSCOPE_INT64] = put_64,   [OPSCOPE_UINT8] = put_8,     [OPSCOPE_BOOL] = put_8,
    [OPSCOPE_FLOAT16] = put_16, [OPSCOPE_BFLOAT16] = put_16,
};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor, *index = arguments[2].as.tensor;
    if (arguments[0].kind != OPSCOPE_ARGUMENT_TENSOR ||
        arguments[2].kind != OPSCOPE_ARGUMENT_TENSOR) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: self and index must be tensors",
                                   opscope__call_name(call));
    }
    if (arguments[3].kind == OPSCOPE_ARGUMENT_TENSOR) {
        return opscope__scatter(call, placings, arguments, outputs);
    }
    opscope_tensor *one, *all = NULL;
    int status =
        opscope__check_number(opscope__call_name(call), &arguments[3], (opscope_dtype)self->dtype);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(0, NULL, (opscope_dtype)self->dtype, &one);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__fill(one, &arguments[3]);
    static const int64_t still[OPSCOPE_DIM_LIMIT] = {0};
    status = opscope__tensor_view(one, index->dims, opscope__sizes(index), still, 0, &all);
    if (status == OPSCOPE_OK) {
        const opscope_argument with_tensor[] = {arguments[0], arguments[1], arguments[2],
                                                opscope__T(all)};
        status = opscope__scatter(call, placings, with_tensor, outputs);
    }
    opscope_tensor_release(all);
    opscope_tensor_release(one);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__f(&f, "scatter", opscope__T(backward->gradients[0]),
                                                backward->arguments[1], backward->arguments[2],
                                                opscope__I(0)));
    }
    if (backward->wanted[2]) {
        gradients[2] = opscope__keep(opscope__placed_gradient(&f, backward));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(scatter) = {
    .schema = "scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .doc = "self with each element of src, or one number, written at its position, except that "
           "index gives the position along dim. No dimension of index exceeds that of src, and "
           "only dim may exceed that of self. If two elements have one position, the last one "
           "stays, and neither gets the gradient.",
    .samples = "t(3, 4), 1, (index(1, 3, 2) + [0, 2]), t(3, 2)\n"
               "t(3, 4), 0, index(3, 1, 3), 2.5",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
    .has_inplace = true,
    .takes_numbers = true,
};
