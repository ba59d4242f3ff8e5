/* tensor/ops/nn/embedding.c -- core::embedding: rows of a table. */
#include "tensor/ops/index/index_rows.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *weight = arguments[0].as.tensor;
    if (weight->dims != 2) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME,
                                   "%s: the table has 2 dimensions, not %d (sizes %s)", name,
                                   weight->dims, opscope__shape_text(weight).text);
    }
    return opscope__pick_rows(name, weight, 0, arguments[1].as.tensor, outputs);
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *weight = backward->inputs[0], *index = backward->inputs[1];
    if (backward->wanted[0]) {
        int64_t width = opscope__sizes(weight)[1];
        opscope_tensor *rows = opscope__f(&f, "reshape", opscope__T(grad),
                                          opscope__L(((int64_t[]){index->count, width}), 2));
        opscope_tensor *flat = opscope__f(&f, "reshape", opscope__T(backward->inputs[1]),
                                          opscope__L(((int64_t[]){index->count}), 1));
        gradients[0] = opscope__keep(opscope__f(&f, "index_add_backward", opscope__T(rows),
                                                opscope__L(opscope__sizes(weight), 2),
                                                opscope__I(0), opscope__T(flat)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(embedding) = {
    .schema = "embedding(Tensor weight, Tensor indices) -> Tensor",
    .doc = "The rows of a table at indices (integers of any sizes): [rows, width] and [...] "
           "give [..., width].",
    .samples = "t(5, 3), index(5, 2, 4)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
