/* tensor/ops/index/index_add_backward.c -- core::index_add_backward: adds rows at the positions
 * that they were selected from. */
#include "tensor/dispatch/formula.h"
#include "tensor/ops/index/index_rows.h"

#define ADD(name, type)                                                                            \
    static void name(char *out, const char *in, int64_t outer, int64_t size, int64_t inner,        \
                     const int64_t *indices, int64_t count)                                        \
    {                                                                                              \
        for (int64_t i = 0; i < outer; i++) {                                                      \
            for (int64_t j = 0; j < count; j++) {                                                  \
                type *to = (type *)(void *)out + (i * size + indices[j]) * inner;                  \
                const type *from = (const type *)(const void *)in + (i * count + j) * inner;       \
                for (int64_t k = 0; k < inner; k++) {                                              \
                    to[k] += from[k];                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ADD(add_float32, float)
ADD(add_float64, double)

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *grad = arguments[0].as.tensor, *flat = NULL, *indices = NULL, *made = NULL;
    const opscope_tensor *index = arguments[3].as.tensor;
    int dim, dims = (int)arguments[1].count;
    int status = opscope__wrap_dim(name, arguments[2].as.integer, dims, &dim);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(dims, arguments[1].as.integers, (opscope_dtype)grad->dtype,
                                       &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    bool fits = dims > 0 && grad->dims == dims && index->dims == 1 &&
                (grad->dtype == OPSCOPE_FLOAT32 || grad->dtype == OPSCOPE_FLOAT64);
    for (int i = 0; i < dims && fits; i++) {
        fits = opscope__sizes(grad)[i] == (i == dim ? index->count : opscope__sizes(made)[i]);
    }
    if (!fits) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: a %s gradient of sizes %s is not that of %lld rows picked along "
            "dimension %d of sizes %s",
            name, opscope_dtype_name((opscope_dtype)grad->dtype), opscope__shape_text(grad).text,
            (long long)index->count, dim, opscope__shape_text(made).text);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__indices(name, index, opscope__sizes(made)[dim], &indices);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__contiguous(grad, &flat);
    }
    if (status == OPSCOPE_OK) {
        opscope__fill(made, &opscope__I(0));
        int64_t outer = opscope__count_of(dim, opscope__sizes(made)),
                size = opscope__sizes(made)[dim];
        int64_t inner = opscope__count_of(dims - dim - 1, opscope__sizes(made) + dim + 1);
        (grad->dtype == OPSCOPE_FLOAT32 ? add_float32 : add_float64)(
            made->data, flat->data, outer, size, inner,
            (const int64_t *)(const void *)indices->data, indices->count);
        outputs[0] = opscope_tensor_retain(made);
    }
    opscope_tensor_release(made);
    opscope_tensor_release(indices);
    opscope_tensor_release(flat);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *more = backward->gradients[0];
    gradients[0] =
        opscope__keep(opscope__f(&f, "index_select", opscope__T(more), backward->arguments[2],
                                 opscope__T(backward->inputs[1])));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(index_add_backward) = {
    .schema = "index_add_backward(Tensor grad_output, int[] sizes, int dim, Tensor index) -> "
              "Tensor",
    .doc = "Zeros of those sizes with each row of grad_output added at its index along dim: the "
           "gradient through index_select. For floats.",
    .samples = "t(5, 4), [3, 4], 0, index(3, 5)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
