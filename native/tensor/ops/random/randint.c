/* tensor/ops/random/randint.c -- core::randint: uniformly distributed random integers. */
#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/random.h"

static int forward(struct opscope__call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs)
{
    const char *name = opscope__call_name(call);
    int64_t low = arguments[0].as.integer, high;
    const opscope_argument *size = &arguments[2];
    if (size->kind == OPSCOPE_ARGUMENT_NONE && arguments[1].kind == OPSCOPE_ARGUMENT_INTS) {
        size = &arguments[1]; /* randint(high, size) */
        high = low;
        low = 0;
    } else if (size->kind == OPSCOPE_ARGUMENT_INTS && arguments[1].kind == OPSCOPE_ARGUMENT_INT) {
        high = arguments[1].as.integer;
    } else {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                   "%s: expected (high, size) or (low, high, size)", name);
    }
    int64_t dtype = arguments[3].as.integer;
    uint64_t span = (uint64_t)high - (uint64_t)low;
    if (high <= low || dtype < 0 || dtype >= OPSCOPE_DTYPE_COUNT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s: no integers from %lld to below %lld",
                                   name, (long long)low, (long long)high);
    }
    opscope_tensor *made;
    int status = opscope__tensor_empty((int)size->count, size->as.integers, OPSCOPE_INT64, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__stretch stretch = opscope__stretch_take((uint64_t)made->count);
    for (int64_t i = 0; i < made->count; i++) {
        /* The high half of a 128-bit product: uniform to within span / 2^64. */
        uint64_t drawn = (uint64_t)((unsigned __int128)opscope__draw_bits(&stretch) * span >> 64);
        ((int64_t *)(void *)made->data)[i] = (int64_t)((uint64_t)low + drawn);
    }
    if (dtype == OPSCOPE_INT64) {
        outputs[0] = made;
        return OPSCOPE_OK;
    }
    status = opscope__convert(made, (opscope_dtype)dtype, outputs);
    opscope_tensor_release(made);
    return status;
}

const struct opscope__operator_spec OPSCOPE__OPERATOR(randint) = {
    .schema =
        "randint(int low=0, int|int[]? high=None, int[]? size=None, *, dtype dtype=int64) -> Tensor",
    .doc = "Integers drawn uniformly from low (default 0) up to but excluding high: "
           "randint(high, size) or randint(low, high, size). Repeatable after manual_seed.",
    .samples = "5, [3, 4]\n"
               "2, 5, [3]\n"
               "0, 5, [2], dtype=float32",
    .forward = forward,
};
