/* Any bytes are a program over a few tensors: views of any strides the library accepts, and operators on
 * them, some of which write. Nothing may crash, whatever the operators answer. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "opscope/autograd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TENSOR_LIMIT = 6, COUNT_LIMIT = 2000 };

struct input {
    const uint8_t *data;
    size_t size;
};

static int take(struct input *input)
{
    if (input->size == 0) {
        return 0;
    }
    input->size--;
    return *input->data++;
}

static opscope_tensor *make(struct input *input)
{
    int64_t sizes[4];
    int dims = take(input) % 5;
    for (int i = 0; i < dims; i++) {
        sizes[i] = take(input) % 6;
    }
    opscope_tensor *out = NULL;
    if (opscope_tensor_empty(dims, sizes, (opscope_dtype)(take(input) % OPSCOPE_DTYPE_COUNT), NULL,
                             &out) != OPSCOPE_OK) {
        abort();
    }
    uint8_t *bytes = opscope_tensor_storage_data(out);
    bool is_bool = opscope_tensor_dtype(out) == OPSCOPE_BOOL;
    for (size_t i = 0; i < opscope_tensor_storage_bytes(out); i++) {
        bytes[i] = (uint8_t)(take(input) & (is_bool ? 1 : 255));
    }
    if (take(input) % 2 != 0) {
        opscope_tensor_set_requires_grad(out, true);
    }
    return out;
}

static opscope_tensor *view(struct input *input, opscope_tensor *base)
{
    int64_t sizes[4], strides[4];
    int dims = take(input) % 5;
    for (int i = 0; i < dims; i++) {
        sizes[i] = take(input) % 6;
        strides[i] = (int8_t)take(input) % 16;
    }
    opscope_tensor *out = NULL;
    return opscope_tensor_as_strided(base, dims, sizes, strides, take(input) % 32, &out) == OPSCOPE_OK
               ? out
               : opscope_tensor_retain(base);
}

static opscope_argument argument(struct input *input, opscope_tensor *const *tensors, int64_t *integers)
{
    opscope_argument out = {OPSCOPE_ARGUMENT_NONE, 0, {0}};
    switch (take(input) % 8) {
    case 0:
    case 1:
    case 2:
        out.kind = OPSCOPE_ARGUMENT_TENSOR;
        out.as.tensor = tensors[take(input) % TENSOR_LIMIT];
        break;
    case 3:
        out.kind = OPSCOPE_ARGUMENT_TENSORS;
        out.count = (uint32_t)(take(input) % 4);
        out.as.tensors = tensors + take(input) % 3;
        break;
    case 4:
        out.kind = OPSCOPE_ARGUMENT_INT;
        out.as.integer = (int8_t)take(input) % 9;
        break;
    case 5:
        out.kind = OPSCOPE_ARGUMENT_FLOAT;
        out.as.real = (int8_t)take(input) / 8.0;
        break;
    case 6:
        out.kind = OPSCOPE_ARGUMENT_INTS;
        out.count = (uint32_t)(take(input) % 5);
        for (uint32_t i = 0; i < out.count; i++) {
            integers[i] = (int8_t)take(input) % 9;
        }
        out.as.integers = integers;
        break;
    default:
        break;
    }
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    opscope_tensor *tensors[TENSOR_LIMIT];
    for (int i = 0; i < TENSOR_LIMIT; i++) {
        tensors[i] = i < TENSOR_LIMIT / 2 ? make(&input) : view(&input, tensors[i - TENSOR_LIMIT / 2]);
    }
    for (int step = 0; step < 16 && input.size > 0; step++) {
        opscope_argument arguments[6];
        int64_t integers[6][5];
        const opscope_operator *op = opscope_operator_at((size_t)take(&input) % opscope_operator_count());
        size_t count = (size_t)take(&input) % 6;
        for (size_t i = 0; i < count; i++) {
            arguments[i] = argument(&input, tensors, integers[i]);
        }
        opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL};
        if (opscope_call(op, arguments, count, outputs) != OPSCOPE_OK) {
            continue;
        }
        opscope_tensor *root = outputs[0];
        if (take(&input) % 4 == 0 && opscope_tensor_requires_grad(root)) {
            opscope_backward(&root, NULL, 1, take(&input) % 2 != 0, false);
        }
        int place = take(&input) % TENSOR_LIMIT;
        for (int i = 0; i < OPSCOPE_OUTPUT_LIMIT; i++) {
            if (i == 0 && opscope_tensor_count(root) <= COUNT_LIMIT) {
                opscope_tensor_release(tensors[place]);
                tensors[place] = root;
            } else {
                opscope_tensor_release(outputs[i]);
            }
        }
    }
    for (int i = 0; i < TENSOR_LIMIT; i++) {
        opscope_tensor_release(tensors[i]);
    }
    return 0;
}
