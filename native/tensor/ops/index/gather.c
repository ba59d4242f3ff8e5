/* tensor/ops/index/gather.c -- core::gather: selects elements by indices along a dimension. */
#include "tensor/ops/index/gather_index.h"

struct gather {
    struct opscope__gather_index places;
    const char *in;
    char *out;
    size_t item;
};

#define TAKE(type)                                                                                 \
    for (int64_t j = 0; j < p->width; j++) {                                                       \
        ((type *)(void *)g->out)[row * p->width + j] =                                             \
            ((const type *)(const void *)g->in)[start + j * p->step + index[j] * p->stride];       \
    }

static void part(int64_t begin, int64_t end, void *arg)
{
    const struct gather *g = arg;
    const struct opscope__gather_index *p = &g->places;
    for (int64_t row = begin; row < end; row++) {
        const int64_t *index = (const int64_t *)(const void *)p->index->data + row * p->width;
        int64_t start = opscope__row_start(p->tensor, opscope__sizes(p->index), p->dim, row);
        switch (g->item) {
        case 1:
            TAKE(uint8_t)
            break;
        case 2:
            TAKE(uint16_t)
            break;
        case 4:
            TAKE(uint32_t)
            break;
        default:
            TAKE(uint64_t)
        }
    }
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor, *index = arguments[2].as.tensor;
    struct gather gather = {.in = self->data,
                            .item = opscope_dtype_bytes((opscope_dtype)self->dtype)};
    int status = opscope__gather_index_of(opscope__call_name(call), self, arguments[1].as.integer,
                                          index, &gather.places);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__tensor_empty(index->dims, opscope__sizes(index), (opscope_dtype)self->dtype,
                                   outputs);
    if (status == OPSCOPE_OK) {
        gather.out = outputs[0]->data;
        opscope__parallel(gather.places.rows, OPSCOPE__GRAIN / (gather.places.width * 4 + 1) + 1,
                          part, &gather);
    }
    opscope_tensor_release(gather.places.index);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    if (backward->wanted[0]) {
        opscope_tensor *grad = backward->gradients[0];
        opscope_tensor *zeros = opscope__f(
            &f, "zeros", opscope__L(opscope__sizes(self), self->dims), opscope__I(grad->dtype));
        gradients[0] =
            opscope__keep(opscope__f(&f, "scatter_add", opscope__T(zeros), backward->arguments[1],
                                     backward->arguments[2], opscope__T(grad)));
    }
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(gather) = {
    .schema = "gather(Tensor self, int dim, Tensor index) -> Tensor",
    .doc = "For each element of index (integers), the element of self at the same position, "
           "except that index gives the position along dim. Negative indices count from the "
           "end. index has as many dimensions as self, and may be larger only along dim; the "
           "result has its sizes.",
    .samples = "t(3, 4), 1, index(4, 3, 6)\n"
               "t(3, 4, 2), 0, index(3, 5, 4, 1)\n"
               "t(), 0, index(1)",
    .forward = forward,
    .backward = backward,
    .saves_inputs = 2,
};
