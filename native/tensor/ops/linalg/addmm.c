/* tensor/ops/linalg/addmm.c -- core::addmm: a product of matrices plus a tensor. */
#include "tensor/kernels/convert.h"
#include "tensor/ops/linalg/product.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *bias = arguments[0].as.tensor;
    const opscope_tensor *a = arguments[1].as.tensor, *b = arguments[2].as.tensor;
    int status = opscope__check_product(name, a, b, 2);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int dims = 2;
    const int64_t wanted[] = {opscope__sizes(a)[0], opscope__sizes(b)[1]};
    int64_t sizes[OPSCOPE_DIM_LIMIT] = {wanted[0], wanted[1]};
    status = opscope__broadcast(name, &dims, sizes, bias->dims, opscope__sizes(bias));
    if (status == OPSCOPE_OK && (dims != 2 || sizes[0] != wanted[0] || sizes[1] != wanted[1])) {
        status = opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "%s: a bias of sizes %s does not broadcast to the product's %s",
            name, opscope__shape_text(bias).text, opscope__sizes_text(2, wanted).text);
    }
    opscope_tensor *made;
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(2, wanted, (opscope_dtype)a->dtype, &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__copy(made, bias);
    struct opscope__matrix x = opscope__matrix_of(a, 0), y = opscope__matrix_of(b, 0);
    status = opscope__gemm(name, (opscope_dtype)a->dtype, &x, &y, made->data, y.columns, true);
    return opscope__tensor_finish(status, made, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(opscope__sum_to(&f, grad, backward->inputs[0]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *turned = opscope__f1(&f, "t", backward->inputs[2]);
        gradients[1] = opscope__keep(opscope__f2(&f, "mm", grad, turned));
    }
    if (backward->wanted[2]) {
        opscope_tensor *turned = opscope__f1(&f, "t", backward->inputs[1]);
        gradients[2] = opscope__keep(opscope__f2(&f, "mm", turned, grad));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(addmm) = {
    .schema = "addmm(Tensor self, Tensor mat1, Tensor mat2) -> Tensor",
    .doc = "self + mat1 mat2, where self broadcasts to the sizes of the product.",
    .samples = "t(5), t(3, 4), t(4, 5)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 6,
    .saves_for = {0, 4, 2},
};
