/* tensor/ops/linalg/bmm.c -- core::bmm: a batch of matrix products. */
#include "tensor/ops/linalg/product.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *a = arguments[0].as.tensor, *b = arguments[1].as.tensor;
    int status = opscope__check_product(name, a, b, 3);
    if (status == OPSCOPE_OK && opscope__sizes(a)[0] != opscope__sizes(b)[0]) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: batches of %lld and %lld matrices (sizes %s and %s) must be "
            "equal",
            name, (long long)opscope__sizes(a)[0], (long long)opscope__sizes(b)[0],
            opscope__shape_text(a).text, opscope__shape_text(b).text);
    }
    opscope_tensor *made = NULL;
    if (status == OPSCOPE_OK) {
        int64_t sizes[] = {opscope__sizes(a)[0], opscope__sizes(a)[1], opscope__sizes(b)[2]};
        status = opscope__tensor_empty(3, sizes, (opscope_dtype)a->dtype, &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t bytes =
        opscope__strides(made)[0] * (int64_t)opscope_dtype_bytes((opscope_dtype)a->dtype);
    for (int64_t i = 0; i < opscope__sizes(a)[0] && status == OPSCOPE_OK; i++) {
        struct opscope__matrix x = opscope__matrix_of(a, i * opscope__strides(a)[0]);
        struct opscope__matrix y = opscope__matrix_of(b, i * opscope__strides(b)[0]);
        status = opscope__gemm(name, (opscope_dtype)a->dtype, &x, &y, made->data + i * bytes,
                               y.columns, false);
    }
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    for (int i = 0; i < 2; i++) {
        if (backward->wanted[i]) {
            opscope_tensor *turned = opscope__f(
                &f, "transpose", opscope__T(backward->inputs[1 - i]), opscope__I(1), opscope__I(2));
            gradients[i] = opscope__keep(i == 0 ? opscope__f2(&f, "bmm", grad, turned)
                                                : opscope__f2(&f, "bmm", turned, grad));
        }
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(bmm) = {
    .schema = "bmm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "Products of matrices of one dtype: b by n by k with b by k by m.",
    .samples = "t(2, 3, 4), t(2, 4, 5)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2, 1},
};
