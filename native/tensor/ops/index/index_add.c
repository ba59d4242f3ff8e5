/* tensor/ops/index/index_add.c -- core::index_add: adds rows at the positions in a list of
 * indices. */
#include "tensor/ops/index/gather_index.h"

struct rows {
    opscope_tensor *made;
    const char *source; /* contiguous */
    const int64_t *index;
    int64_t count, outer, size,
        inner; /* source: [outer, count, inner]; output: [outer, size, inner] */
    double alpha;
};

#define ADD(name, type)                                                                            \
    static void name(const struct rows *r)                                                         \
    {                                                                                              \
        const type alpha = (type)r->alpha;                                                         \
        for (int64_t i = 0; i < r->outer; i++) {                                                   \
            for (int64_t j = 0; j < r->count; j++) {                                               \
                type *to = (type *)(void *)r->made->data + (i * r->size + r->index[j]) * r->inner; \
                const type *from =                                                                 \
                    (const type *)(const void *)r->source + (i * r->count + j) * r->inner;         \
                for (int64_t k = 0; k < r->inner; k++) {                                           \
                    to[k] = (type)(to[k] + alpha * from[k]);                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

ADD(add_float32, float)
ADD(add_float64, double)
ADD(add_int32, int32_t)
ADD(add_int64, int64_t)
ADD(add_uint8, uint8_t)

typedef void (*adder)(const struct rows *rows);

static const adder adders[OPSCOPE_DTYPE_COUNT] = {[OPSCOPE_FLOAT32] = add_float32,
                                                  [OPSCOPE_FLOAT64] = add_float64,
                                                  [OPSCOPE_INT32] = add_int32,
                                                  [OPSCOPE_INT64] = add_int64,
                                                  [OPSCOPE_UINT8] = add_uint8};

static int check(const char *name, const opscope_tensor *self, int dim, const opscope_tensor *index,
                 const opscope_tensor *source)
{
    bool fits = self->dims > 0 && source->dims == self->dims && index->dims == 1 &&
                source->dtype == self->dtype && adders[self->dtype] != NULL;
    for (int i = 0; i < self->dims && fits; i++) {
        fits = opscope__sizes(source)[i] == (i == dim ? index->count : opscope__sizes(self)[i]);
    }
    return fits ? OPSCOPE_OK
                : opscope_tensor_fail(
                      OPSCOPE_ERROR_RUNTIME,
                      "%s: self %s of sizes %s, index of sizes %s, source %s of sizes %s: expected "
                      "numbers of one dtype, a list of indices, and a source of self's sizes but "
                      "with one row for each index along dimension %d",
                      name, opscope_dtype_name((opscope_dtype)self->dtype),
                      opscope__shape_text(self).text, opscope__shape_text(index).text,
                      opscope_dtype_name((opscope_dtype)source->dtype),
                      opscope__shape_text(source).text, dim);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    opscope_tensor *self = arguments[0].as.tensor, *source = arguments[3].as.tensor;
    opscope_tensor *indices = NULL, *flat = NULL, *made = NULL;
    const opscope_tensor *index = arguments[2].as.tensor;
    int dim;
    int status = opscope__wrap_dim(name, arguments[1].as.integer, self->dims, &dim);
    if (status == OPSCOPE_OK && (status = check(name, self, dim, index, source)) == OPSCOPE_OK &&
        (status = opscope__indices(name, index, opscope__sizes(self)[dim], &indices)) ==
            OPSCOPE_OK &&
        (status = opscope__contiguous(source, &flat)) == OPSCOPE_OK) {
        status =
            self->is_contiguous ? opscope__changed(call, self, &made) : opscope__clone(self, &made);
    }
    if (status == OPSCOPE_OK && source->count > 0) {
        struct rows rows = {made,
                            flat->data,
                            (const int64_t *)(const void *)indices->data,
                            indices->count,
                            opscope__count_of(dim, opscope__sizes(self)),
                            opscope__sizes(self)[dim],
                            opscope__count_of(self->dims - dim - 1, opscope__sizes(self) + dim + 1),
                            arguments[4].kind == OPSCOPE_ARGUMENT_FLOAT
                                ? arguments[4].as.real
                                : (double)arguments[4].as.integer};
        adders[self->dtype](&rows);
    }
    outputs[0] = made;
    opscope_tensor_release(indices);
    opscope_tensor_release(flat);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    opscope_tensor *grad = backward->gradients[0];
    if (backward->wanted[0]) {
        gradients[0] = opscope__keep(grad);
    }
    if (backward->wanted[2]) {
        opscope_tensor *rows = opscope__f(&f, "index_select", opscope__T(grad),
                                          backward->arguments[1], backward->arguments[2]);
        gradients[2] =
            opscope__keep(opscope__f(&f, "mul", opscope__T(rows), backward->arguments[4]));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(index_add) = {
    .schema =
        "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    .doc = "self with alpha times each row of source along dim added to the row at its index in "
           "a list of integers. Negative indices count from the end.",
    .samples = "t(3, 4), 0, index(3, 5), t(5, 4)\n"
               "t(3, 4), 1, index(4, 2), t(3, 2), alpha=2",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
    .has_inplace = true,
};
