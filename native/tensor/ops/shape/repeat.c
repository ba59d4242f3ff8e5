/* tensor/ops/shape/repeat.c -- core::repeat: repeats a tensor along dimensions. */
#include "tensor/core/shape.h"
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"

/* The result with each dimension as a pair [repeats, size]: its sizes, their number, and the sizes
 * of the result. */
static int find_parts(const char *name, int own_dims, const int64_t *own,
                      const opscope_argument *repeats, int64_t *parts, int64_t *sizes)
{
    int dims = (int)repeats->count;
    bool fits = dims >= own_dims && dims <= OPSCOPE_DIM_LIMIT / 2;
    for (int i = 0; i < dims && fits; i++) {
        int64_t times = repeats->as.integers[i],
                size = i < dims - own_dims ? 1 : own[i - (dims - own_dims)];
        parts[2 * i] = times;
        parts[2 * i + 1] = size;
        fits = times >= 0 && !__builtin_mul_overflow(times, size, &sizes[i]);
    }
    return fits ? OPSCOPE_OK
                : opscope_tensor_fail(
                      OPSCOPE_ERROR_RUNTIME,
                      "%s: repeats %s of sizes %s: expected a number, not negative, for each "
                      "dimension, at most %d, and no more elements than memory holds",
                      name, opscope__sizes_text(dims, repeats->as.integers).text,
                      opscope__sizes_text(own_dims, own).text, OPSCOPE_DIM_LIMIT / 2);
}

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const opscope_tensor *self = arguments[0].as.tensor;
    int64_t parts[OPSCOPE_DIM_LIMIT], sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    int dims = (int)arguments[1].count, missing = dims - self->dims;
    int status = find_parts(opscope__call_name(call), self->dims, opscope__sizes(self),
                            &arguments[1], parts, sizes);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_empty(dims, sizes, (opscope_dtype)self->dtype, outputs);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    for (int i = 0; i < dims; i++) {
        strides[2 * i] = 0;
        strides[2 * i + 1] = i < missing ? 0 : opscope__strides(self)[i - missing];
    }
    opscope_tensor *into = NULL, *from = NULL;
    status = opscope__tensor_view(outputs[0], 2 * dims, parts, NULL, 0, &into);
    if (status == OPSCOPE_OK) {
        status = opscope__tensor_view(self, 2 * dims, parts, strides, 0, &from);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__copy(into, from);
    }
    opscope_tensor_release(into);
    opscope_tensor_release(from);
    return status;
}

static int backward(const struct opscope__backward *backward, opscope_tensor **gradients)
{
    struct opscope__formula f = {0};
    const opscope_tensor *self = backward->inputs[0];
    int64_t parts[OPSCOPE_DIM_LIMIT], sizes[OPSCOPE_DIM_LIMIT], folded[OPSCOPE_DIM_LIMIT];
    int dims = (int)backward->arguments[1].count;
    f.status = find_parts("core::repeat", self->dims, opscope__sizes(self), &backward->arguments[1],
                          parts, sizes);
    for (int i = 0; i < dims; i++) {
        folded[i] = 2 * i;
    }
    opscope_tensor *sum =
        opscope__f(&f, "reshape", opscope__T(backward->gradients[0]), opscope__L(parts, 2 * dims));
    if (dims > 0) {
        sum = opscope__f(&f, "sum", opscope__T(sum), opscope__L(folded, dims));
    }
    gradients[0] = opscope__keep(
        opscope__f(&f, "reshape", opscope__T(sum), opscope__L(opscope__sizes(self), self->dims)));
    return opscope__formula_end(&f, gradients, backward->input_count);
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(repeat) = {
    .schema = "repeat(Tensor self, int[] repeats) -> Tensor",
    .doc = "self repeated that many times along each dimension; more numbers than dimensions "
           "add dimensions in front. Makes a copy; expand does not.",
    .samples = "t(3), [2]\n"
               "t(2, 3), [2, 1, 3]\n"
               "t(2, 3), [0, 2]",
    .forward = forward,
    .backward = backward,
};
