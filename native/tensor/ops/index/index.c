/* tensor/ops/index/index.c -- core::index: selects the elements at positions given by several
 * tensors of indices. */
#include "tensor/ops/index/indexing.h"

/* t[rows, columns] moves single elements: this avoids calling memcpy for each. */
static void take_1(char *row, char *packed, int64_t elements)
{
    memcpy(packed, row, (size_t)elements);
}

static void take_2(char *row, char *packed, int64_t elements)
{
    memcpy(packed, row, (size_t)elements * 2);
}

static void take_4(char *row, char *packed, int64_t elements)
{
    elements == 1 ? (void)memcpy(packed, row, 4) : (void)memcpy(packed, row, (size_t)elements * 4);
}

static void take_8(char *row, char *packed, int64_t elements)
{
    elements == 1 ? (void)memcpy(packed, row, 8) : (void)memcpy(packed, row, (size_t)elements * 8);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    opscope_tensor *self = arguments[0].as.tensor, *made;
    struct opscope__rows rows;
    int status = opscope__rows_find(opscope__call_name(call), self, arguments[1].as.tensors,
                                    arguments[1].count, arguments[2].as.integer, &rows);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__tensor_empty(rows.dims, rows.sizes, (opscope_dtype)self->dtype, &made);
    if (status == OPSCOPE_OK) {
        size_t bytes = opscope_dtype_bytes((opscope_dtype)self->dtype);
        opscope__rows_move(&rows, self, made->data,
                           bytes == 1   ? take_1
                           : bytes == 2 ? take_2
                           : bytes == 4 ? take_4
                                        : take_8);
        outputs[0] = made;
    }
    opscope_tensor_release(rows.offsets);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0];
    if (backward->wanted[0]) {
        opscope_tensor *zeros = opscope__f(
            &f, "zeros", opscope__L(opscope__sizes(self), self->dims), opscope__I(self->dtype));
        opscope_tensor *added = zeros == NULL ? NULL
                                              : opscope__f(&f, "index_put_", opscope__T(zeros),
                                                           opscope__T(grad), backward->arguments[1],
                                                           backward->arguments[2], opscope__B(1));
        gradients[0] = opscope__keep(added);
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(index) = {
    .schema = "index(Tensor self, Tensor[] indices, int dim=0) -> Tensor",
    .doc = "The elements of self at the positions that several tensors of indices give "
           "together. The tensors broadcast. They replace as many dimensions, from dim on, by "
           "their own. Negative indices count from the end. t[i, j] calls it.",
    .samples = "t(4, 5), [index(4, 3)]\n"
               "t(3, 4, 5), [index(4, 2, 1), index(5, 3)], 1\n"
               "t(3, 4), [index(3, 2), index(4, 2)], -2",
    .forward = forward,
    .backward = backward,
    .saves_inputs = ~1u,
};
