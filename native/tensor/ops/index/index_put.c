/* tensor/ops/index/index_put.c -- core::index_put: writes values at positions given by several
 * tensors of indices. */
#include "tensor/ops/index/indexing.h"

static void put_1(char *row, char *packed, int64_t elements)
{
    memcpy(row, packed, (size_t)elements);
}

static void put_2(char *row, char *packed, int64_t elements)
{
    memcpy(row, packed, (size_t)elements * 2);
}

static void put_4(char *row, char *packed, int64_t elements)
{
    elements == 1 ? (void)memcpy(row, packed, 4) : (void)memcpy(row, packed, (size_t)elements * 4);
}

static void put_8(char *row, char *packed, int64_t elements)
{
    elements == 1 ? (void)memcpy(row, packed, 8) : (void)memcpy(row, packed, (size_t)elements * 8);
}

#define ADD(name, type)                                                                            \
    static void name(char *row, char *packed, int64_t elements)                                    \
    {                                                                                              \
        type *to = (type *)(void *)row;                                                            \
        const type *from = (const type *)(const void *)packed;                                     \
        for (int64_t i = 0; i < elements; i++) {                                                   \
            to[i] = (type)(to[i] + from[i]);                                                       \
        }                                                                                          \
    }

ADD(add_float32, float)
ADD(add_float64, double)
ADD(add_int32, int32_t)
ADD(add_int64, int64_t)
ADD(add_uint8, uint8_t)

static opscope__row_mover *const adders[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = add_float32, [OPSCOPE_FLOAT64] = add_float64, [OPSCOPE_INT32] = add_int32,
    [OPSCOPE_INT64] = add_int64,     [OPSCOPE_UINT8] = add_uint8,
};

static opscope__row_mover *mover_of(opscope_dtype dtype, bool accumulate)
{
    size_t bytes = opscope_dtype_bytes(dtype);
    return accumulate   ? adders[dtype]
           : bytes == 1 ? put_1
           : bytes == 2 ? put_2
           : bytes == 4 ? put_4
                        : put_8;
}

/* The values for all positions, contiguous and of that dtype: a new reference. */
static int pack(const char *name, const opscope_argument *values, const struct opscope__rows *rows,
                opscope_dtype dtype, opscope_tensor **out)
{
    opscope_tensor *given = values->kind == OPSCOPE_ARGUMENT_TENSOR ? values->as.tensor : NULL,
                   *made;
    if (given != NULL) {
        int64_t sizes[OPSCOPE_DIM_LIMIT];
        int dims = rows->dims;
        memcpy(sizes, rows->sizes, (size_t)dims * sizeof *sizes);
        int status = opscope__broadcast(name, &dims, sizes, given->dims, opscope__sizes(given));
        if (status != OPSCOPE_OK || dims != rows->dims ||
            memcmp(sizes, rows->sizes, (size_t)dims * sizeof *sizes) != 0) {
            return opscope_tensor_fail(
                OPSCOPE_ERROR_RUNTIME,
                "%s: values of sizes %s do not broadcast to the %s places that "
                "the indices name",
                name, opscope__shape_text(given).text,
                opscope__sizes_text(rows->dims, rows->sizes).text);
        }
        if (given->is_contiguous && given->dtype == dtype && given->dims == rows->dims &&
            given->count == opscope__count_of(dims, sizes)) {
            *out = opscope_tensor_retain(given);
            return OPSCOPE_OK;
        }
    }
    int status = given != NULL ? OPSCOPE_OK : opscope__check_number(name, values, dtype);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(rows->dims, rows->sizes, dtype, &made);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (given != NULL) {
        status = opscope__copy(made, given);
    } else {
        opscope__fill(made, values);
    }
    return opscope__tensor_finish(status, made, out);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    if (arguments[0].kind != OPSCOPE_ARGUMENT_TENSOR) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: the first argument must be a tensor",
                                   name);
    }
    opscope_tensor *self = arguments[0].as.tensor, *into = opscope__call_into(call);
    opscope_tensor *made = NULL, *packed = NULL;
    opscope__row_mover *move = mover_of((opscope_dtype)self->dtype, arguments[4].as.integer != 0);
    if (move == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: %s elements cannot be added", name,
                                   opscope_dtype_name((opscope_dtype)self->dtype));
    }
    int status = into == NULL ? opscope__clone(self, &made) : OPSCOPE_OK;
    if (status != OPSCOPE_OK) {
        return status;
    }
    made = into == NULL ? made : opscope_tensor_retain(into);
    struct opscope__rows rows;
    status = opscope__rows_find(name, made, arguments[2].as.tensors, arguments[2].count,
                                arguments[3].as.integer, &rows);
    if (status == OPSCOPE_OK) {
        status = pack(name, &arguments[1], &rows, (opscope_dtype)self->dtype, &packed);
        if (status == OPSCOPE_OK) {
            opscope__rows_move(&rows, made, packed->data, move);
            opscope_tensor_release(packed);
            outputs[0] = opscope_tensor_retain(made);
        }
        opscope_tensor_release(rows.offsets);
    }
    opscope_tensor_release(made);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    const opscope_argument *arguments = backward->arguments;
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(arguments[4].as.integer
                                         ? grad
                                         : opscope__f(&f, "index_put", opscope__T(grad),
                                                      opscope__I(0), arguments[2], arguments[3]));
    }
    if (backward->wanted[1]) {
        opscope_tensor *taken =
            opscope__f(&f, "index", opscope__T(grad), arguments[2], arguments[3]);
        gradients[1] = opscope__keep(opscope__sum_to(&f, taken, backward->inputs[1]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(index_put) = {
    .schema =
        "index_put(Tensor self, Tensor values, Tensor[] indices, int dim=0, bool accumulate=False) "
        "-> Tensor",
    .doc = "self with values, a broadcast tensor or a number, at the positions that several "
           "tensors of indices give, as for index. accumulate adds the values; without it, the "
           "last of several values for one position stays. t[i, j] = values calls it.",
    .samples = "t(4, 5), t(2, 5), [index(4, 2)]\n"
               "t(3, 4, 5), t(3), [index(4, 2, 1), index(5, 3)], 1, True\n"
               "t(3, 4), 2.5, [index(3, 2), index(4, 2)], 0",
    .forward = forward,
    .backward = backward,
    .saves_inputs = ~3u,
    .has_inplace = true,
    .takes_numbers = true,
};
