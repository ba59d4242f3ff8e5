/* tensor/ops/linalg/matmul.c -- core::matmul: the product of tensors of any dimensions. */
#include <string.h>

#include "tensor/ops/linalg/batched.h"

/* The products of all batches; `sizes` are those of the output, including its matrices. */
static int multiply(const char *name, const opscope_tensor *a, const opscope_tensor *b,
                    int batch_dims, const int64_t *sizes, opscope_tensor **out)
{
    opscope_tensor *made;
    opscope_dtype dtype = (opscope_dtype)a->dtype;
    int status = opscope__tensor_empty(batch_dims + 2, sizes, dtype, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t step = sizes[batch_dims] * sizes[batch_dims + 1] * (int64_t)opscope_dtype_bytes(dtype);
    int64_t count = opscope__count_of(batch_dims, sizes);
    bool b_is_one = b->dims == 2;
    if (b_is_one && a->is_contiguous && count > 1) {
        /* With one matrix on the right, all batches are rows of one tall matrix. */
        struct opscope__matrix x = opscope__matrix_of(a, 0), y = opscope__matrix_of(b, 0);
        x.rows *= count;
        status = opscope__gemm(name, dtype, &x, &y, made->data, y.columns, false);
        count = 0;
    }
    for (int64_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        struct opscope__matrix x =
            opscope__matrix_of(a, opscope__batch_shift(a, batch_dims, sizes, i));
        struct opscope__matrix y =
            opscope__matrix_of(b, opscope__batch_shift(b, batch_dims, sizes, i));
        status = opscope__gemm(name, dtype, &x, &y, made->data + i * step, y.columns, false);
    }
    return opscope__tensor_finish(status, made, out);
}

/* The sizes of the product of `a` and `b` as matrices. */
static int find_sizes(const char *name, const opscope_tensor *a, const opscope_tensor *b,
                      int *batch_dims, int64_t *sizes)
{
    int64_t inner = opscope__sizes(a)[a->dims - 1], rows = opscope__sizes(b)[b->dims - 2];
    if (a->dtype != b->dtype || inner != rows) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "%s: %s of sizes %s and %s of sizes %s do not multiply: the dtypes must be equal, and the "
            "columns of the first (%lld) the rows of the second (%lld)",
            name, opscope_dtype_name((opscope_dtype)a->dtype), opscope__shape_text(a).text,
            opscope_dtype_name((opscope_dtype)b->dtype), opscope__shape_text(b).text,
            (long long)inner, (long long)rows);
    }
    *batch_dims = a->dims - 2;
    memcpy(sizes, opscope__sizes(a), (size_t)*batch_dims * sizeof *sizes);
    int status = opscope__broadcast(name, batch_dims, sizes, b->dims - 2, opscope__sizes(b));
    if (status == OPSCOPE_OK) {
        sizes[*batch_dims] = opscope__sizes(a)[a->dims - 2];
        sizes[*batch_dims + 1] = opscope__sizes(b)[b->dims - 1];
    }
    return status;
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    const opscope_tensor *self = arguments[0].as.tensor, *other = arguments[1].as.tensor;
    if (self->dims == 0 || other->dims == 0) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME, "%s: both tensors need at least one dimension (sizes %s and %s)",
            name, opscope__shape_text(self).text, opscope__shape_text(other).text);
    }
    opscope_tensor *a = NULL, *b = NULL, *made = NULL;
    int batch_dims;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int status = opscope__as_matrices(self, true, &a);
    if (status == OPSCOPE_OK) {
        status = opscope__as_matrices(other, false, &b);
    }
    if (status == OPSCOPE_OK) {
        status = find_sizes(name, a, b, &batch_dims, sizes);
    }
    if (status == OPSCOPE_OK) {
        status = multiply(name, a, b, batch_dims, sizes, &made);
    }
    if (status == OPSCOPE_OK) {
        /* Removes the dimension that a vector was given for the product. */
        int dims = batch_dims;
        if (self->dims > 1) {
            sizes[dims++] = opscope__sizes(a)[a->dims - 2];
        }
        if (other->dims > 1) {
            sizes[dims++] = opscope__sizes(b)[b->dims - 1];
        }
        status = opscope__tensor_view(made, dims, sizes, NULL, 0, outputs);
    }
    opscope_tensor_release(made);
    opscope_tensor_release(a);
    opscope_tensor_release(b);
    return status;
}

/* Transposes the matrices of a factor; a vector becomes a matrix with a dimension of 1 at
 * `place`. */
static opscope_tensor *turn(struct opscope__formula *f, opscope_tensor *factor, int place)
{
    return factor->dims == 1
               ? opscope__f(f, "unsqueeze", opscope__T(factor), opscope__I(place))
               : opscope__f(f, "transpose", opscope__T(factor), opscope__I(-2), opscope__I(-1));
}

/* The gradient of a factor, summed over the dimensions that it was broadcast to; a vector was a
 * matrix with a dimension of 1 at `place`. */
static opscope_tensor *fold(struct opscope__formula *f, opscope_tensor *part,
                            const opscope_tensor *factor, int place)
{
    if (factor->dims > 1) {
        return opscope__sum_to(f, part, factor);
    }
    int64_t sizes[] = {factor->count, factor->count};
    sizes[place] = 1;
    part = opscope__f(f, "sum_to_size", opscope__T(part), opscope__L(sizes, 2));
    return opscope__f(f, "reshape", opscope__T(part), opscope__L(opscope__sizes(factor), 1));
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_tensor *self = backward->inputs[0], *other = backward->inputs[1];
    if (self->dims == 1) {
        grad =
            opscope__f(&f, "unsqueeze", opscope__T(grad), opscope__I(other->dims == 1 ? -1 : -2));
    }
    if (other->dims == 1) {
        grad = opscope__f(&f, "unsqueeze", opscope__T(grad), opscope__I(-1));
    }
    if (backward->wanted[0]) {
        opscope_tensor *turned = turn(&f, backward->inputs[1], 0);
        gradients[0] = opscope__keep(fold(&f, opscope__f2(&f, "matmul", grad, turned), self, 0));
    }
    if (backward->wanted[1]) {
        opscope_tensor *turned = turn(&f, backward->inputs[0], 1);
        gradients[1] = opscope__keep(fold(&f, opscope__f2(&f, "matmul", turned, grad), other, 1));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(matmul) = {
    .schema = "matmul(Tensor self, Tensor other) -> Tensor",
    .doc = "The product of tensors: for two vectors their dot product, for a matrix and a "
           "vector a vector, for more dimensions the products of the matrices in the last two, "
           "while the other dimensions broadcast. Both have one dtype. Definition: PyTorch "
           "matmul, NumPy matmul.",
    .samples = "t(3), t(3)\n"
               "t(3, 4), t(4)\n"
               "t(2, 3, 4), t(4, 5)\n"
               "t(2, 1, 3, 4), t(5, 4, 2)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 3,
    .saves_for = {2, 1},
};
