/* tensor/ops/linalg/linear.c -- core::linear: a linear layer. */
#include <string.h>

#include "tensor/ops/linalg/batched.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *input = arguments[0].as.tensor, *weight = arguments[1].as.tensor;
    const opscope_tensor *bias =
        arguments[2].kind != OPSCOPE_ARGUMENT_NONE ? arguments[2].as.tensor : NULL;
    if (input->dims == 0 || weight->dims != 2 || input->dtype != weight->dtype ||
        opscope__sizes(input)[input->dims - 1] != opscope__sizes(weight)[1] ||
        (bias != NULL &&
         (bias->dims != 1 || opscope__sizes(bias)[0] != opscope__sizes(weight)[0]))) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: input %s of sizes %s, weight %s of sizes %s, bias of sizes %s: expected one dtype and "
            "[..., in], [out, in], [out]",
            name, opscope_dtype_name((opscope_dtype)input->dtype), opscope__shape_text(input).text,
            opscope_dtype_name((opscope_dtype)weight->dtype), opscope__shape_text(weight).text,
            bias != NULL ? opscope__shape_text(bias).text : "(none)");
    }
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    memcpy(sizes, opscope__sizes(input), (size_t)input->dims * sizeof *sizes);
    sizes[input->dims - 1] = opscope__sizes(weight)[0];
    opscope_tensor *made, *flat;
    int status = opscope__contiguous(arguments[0].as.tensor, &flat);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__tensor_empty(input->dims, sizes, (opscope_dtype)input->dtype, &made);
    if (status == OPSCOPE_OK && bias != NULL) {
        status = opscope__copy(made, bias);
    }
    if (status == OPSCOPE_OK) {
        int64_t width = opscope__sizes(weight)[1];
        struct opscope__matrix x = {flat->data, opscope__count_of(input->dims - 1, sizes), width,
                                    width, 1};
        struct opscope__matrix y = {weight->data, width, opscope__sizes(weight)[0],
                                    opscope__strides(weight)[1], opscope__strides(weight)[0]};
        status = opscope__gemm(name, (opscope_dtype)input->dtype, &x, &y, made->data, y.columns,
                               bias != NULL);
        outputs[0] = made;
    }
    opscope_tensor_release(flat);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *input = backward->inputs[0], *weight = backward->inputs[1];
    int64_t out = opscope__sizes(weight)[0], in = opscope__sizes(weight)[1];
    int64_t count = opscope__count_of(input->dims - 1, opscope__sizes(input));
    opscope_tensor *rows =
        opscope__f(&f, "reshape", opscope__T(grad), opscope__L(((int64_t[]){count, out}), 2));
    if (backward->wanted[0]) {
        opscope_tensor *part = opscope__f2(&f, "mm", rows, backward->inputs[1]);
        gradients[0] = opscope__keep(opscope__f(&f, "reshape", opscope__T(part),
                                                opscope__L(opscope__sizes(input), input->dims)));
    }
    if (backward->wanted[1]) {
        opscope_tensor *turned = opscope__f1(&f, "t", rows);
        opscope_tensor *flat = opscope__f(&f, "reshape", opscope__T(backward->inputs[0]),
                                          opscope__L(((int64_t[]){count, in}), 2));
        gradients[1] = opscope__keep(opscope__f2(&f, "mm", turned, flat));
    }
    if (backward->wanted[2]) {
        gradients[2] =
            opscope__keep(opscope__f(&f, "sum", opscope__T(rows), opscope__L(((int64_t[]){0}), 1)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(linear) = {
    .schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    .doc = "input times the transpose of weight, plus bias: [..., in], [out, in] and [out] give "
           "[..., out].",
    .samples = "t(2, 3), t(4, 3), t(4)\n"
               "t(2, 5, 3), t(4, 3)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2, 1},
};
