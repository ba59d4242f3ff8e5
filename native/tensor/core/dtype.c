/* tensor/core/dtype.c -- the dtypes: their names, sizes and promotion. */
#include "opscope/tensor.h"

static const struct {
    const char *name;
    uint8_t bytes;
    bool floating;
} facts[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = {"float32", 4, true},   [OPSCOPE_FLOAT64] = {"float64", 8, true},
    [OPSCOPE_INT32] = {"int32", 4, false},      [OPSCOPE_INT64] = {"int64", 8, false},
    [OPSCOPE_UINT8] = {"uint8", 1, false},      [OPSCOPE_BOOL] = {"bool", 1, false},
    [OPSCOPE_BFLOAT16] = {"bfloat16", 2, true}, [OPSCOPE_FLOAT16] = {"float16", 2, true},
};

/* Short names for the table below. */
enum {
    F32 = OPSCOPE_FLOAT32,
    F64 = OPSCOPE_FLOAT64,
    I32 = OPSCOPE_INT32,
    I64 = OPSCOPE_INT64,
    U8 = OPSCOPE_UINT8,
    B = OPSCOPE_BOOL,
    BF = OPSCOPE_BFLOAT16,
    F16 = OPSCOPE_FLOAT16
};

/* As PyTorch's promote_types, also where NumPy differs: int32 with float32 gives float32, not
 * float64. */
static const uint8_t promoted[OPSCOPE_DTYPE_COUNT][OPSCOPE_DTYPE_COUNT] = {
    /*          f32  f64  i32  i64  u8   bool bf16 f16 */
    [F32] = {F32, F64, F32, F32, F32, F32, F32, F32},
    [F64] = {F64, F64, F64, F64, F64, F64, F64, F64},
    [I32] = {F32, F64, I32, I64, I32, I32, BF, F16},
    [I64] = {F32, F64, I64, I64, I64, I64, BF, F16},
    [U8] = {F32, F64, I32, I64, U8, U8, BF, F16},
    [B] = {F32, F64, I32, I64, U8, B, BF, F16},
    [BF] = {F32, F64, BF, BF, BF, BF, BF, F32},
    [F16] = {F32, F64, F16, F16, F16, F16, F32, F16},
};

static bool is_known(opscope_dtype dtype)
{
    return (unsigned)dtype < OPSCOPE_DTYPE_COUNT;
}

const char *opscope_dtype_name(opscope_dtype dtype)
{
    return is_known(dtype) ? facts[dtype].name : "unknown dtype";
}

size_t opscope_dtype_bytes(opscope_dtype dtype)
{
    return is_known(dtype) ? facts[dtype].bytes : 0;
}

bool opscope_dtype_is_floating(opscope_dtype dtype)
{
    return is_known(dtype) && facts[dtype].floating;
}

opscope_dtype opscope_dtype_promote(opscope_dtype a, opscope_dtype b)
{
    return is_known(a) && is_known(b) ? (opscope_dtype)promoted[a][b] : a;
}
