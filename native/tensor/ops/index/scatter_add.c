/* tensor/ops/index/scatter_add.c -- core::scatter_add: adds elements at positions given by
 * indices. */
#include "tensor/ops/index/scatter.h"

#define ADD(name, type)                                                                            \
    static void name(char *out, const char *in, const int64_t *index, int64_t count, int64_t step, \
                     int64_t stride, int64_t from)                                                 \
    {                                                                                              \
        for (int64_t j = 0; j < count; j++) {                                                      \
            type *at = (type *)(void *)out + j * step + index[j] * stride;                         \
            *at = (type)(*at + ((const type *)(const void *)in)[j * from]);                        \
        }                                                                                          \
    }

ADD(add_float32, float)
ADD(add_float64, double)
ADD(add_int32, int32_t)
ADD(add_int64, int64_t)
ADD(add_uint8, uint8_t)

static const opscope__scatter_loop placings[OPSCOPE_DTYPE_COUNT] = {[OPSCOPE_FLOAT32] = add_float32,
                                                                    [OPSCOPE_FLOAT64] = add_float64,
                                                                    [OPSCOPE_INT32] = add_int32,
                                                                    [OPSCOPE_INT64] = add_int64,
                                                                    [OPSCOPE_UINT8] = add_uint8};

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    return opscope__scatter(call, placings, arguments, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(backward->gradients[0]);
    }
    if (backward->wanted[2]) {
        gradients[2] = opscope__keep(opscope__placed_gradient(&f, backward));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(scatter_add) = {
    .schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    .doc = "self with each element of src added at its position, except that index gives the "
           "position along dim: the inverse of gather. No dimension of index exceeds that of "
           "src, and only dim may exceed that of self.",
    .samples = "t(3, 4), 1, index(4, 3, 6), t(3, 6)\n"
               "t(3, 4), 0, index(3, 2, 3), t(2, 3)\n"
               "t(), 0, index(1), t()",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
    .has_inplace = true,
};
