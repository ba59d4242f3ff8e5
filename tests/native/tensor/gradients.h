/* tests/native/tensor/gradients.h -- leaves that require grad, and backward that must succeed. */
#ifndef OPSCOPE_TESTS_GRADIENTS_H
#define OPSCOPE_TESTS_GRADIENTS_H

#include "tensors.h"

static inline opscope_tensor *leaf(uint64_t seed, int dims, const int64_t *sizes)
{
    opscope_tensor *out = numbers(seed, OPSCOPE_FLOAT64, dims, sizes);
    CHECK(opscope_tensor_set_requires_grad(out, true) == OPSCOPE_OK);
    return out;
}

static inline void backward(opscope_tensor *root)
{
    if (opscope_backward(&root, NULL, 1, false, false) != OPSCOPE_OK) {
        fprintf(stderr, "backward: %s\n", opscope_tensor_error());
        _exit(1);
    }
}

#endif
