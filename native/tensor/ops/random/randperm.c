/* tensor/ops/random/randperm.c -- core::randperm: a random permutation. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/random.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    int64_t n = arguments[0].as.integer, dtype = arguments[1].as.integer;
    if (n < 0 || dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: there are no integers below %lld",
                                   opscope__call_name(call), (long long)n);
    }
    opscope_tensor *made;
    int status = opscope__tensor_empty(1, &n, OPSCOPE_INT64, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t *all = (int64_t *)(void *)made->data;
    opscope__stretch stretch = opscope__stretch_take((uint64_t)n);
    /* Fisher and Yates: each integer goes to a random earlier position, or stays. */
    for (int64_t i = 0; i < n; i++) {
        uint64_t places = (uint64_t)i + 1;
        int64_t place = (int64_t)((unsigned __int128)opscope__draw_bits(&stretch) * places >> 64);
        all[i] = all[place];
        all[place] = i;
    }
    if (dtype == OPSCOPE_INT64) {
        outputs[0] = made;
        return OPSCOPE_OK;
    }
    status = opscope__convert(made, (opscope_dtype)dtype, outputs);
    opscope_tensor_release(made);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(randperm) = {
    .schema = "randperm(int n, *, dtype dtype=int64) -> Tensor",
    .doc = "A random permutation of the integers from 0 to n - 1; all permutations are equally "
           "likely. Repeatable after manual_seed.",
    .samples = "5\n"
               "0",
    .forward = forward,
};
