/* tensor/kernels/convert.c -- moves elements between tensors of any strides and dtypes. */
#include "tensor/kernels/convert.h"

#include <string.h>

#include "tensor/core/half.h"
#include "tensor/core/shape.h"
#include "tensor/kernels/iterate.h"

/* ---- one element ------------------------------------------------------------------------------ */

#define PLAIN(value) (value)
#define TRUTH(value) ((uint8_t)((value) != 0))

/* C leaves the conversion of a number outside the range of the integers undefined; here it gives
 * the nearest integer. */
static inline int64_t to_int64(double value)
{
    if (!(value >= -0x1p63)) {
        return INT64_MIN;
    }
    return value < 0x1p63 ? (int64_t)value : INT64_MAX;
}

#define AS_INT32(value) ((int32_t)to_int64((double)(value)))
#define AS_INT64(value) (to_int64((double)(value)))
#define AS_UINT8(value) ((uint8_t)to_int64((double)(value)))

/* A loop over one run: operand 0 is the target, operand 1 the source. */
#define CONVERSION(name, target_type, source_type, read, write)                                    \
    static void name(char *const *data, const int64_t *strides, int64_t count, void *user)         \
    {                                                                                              \
        (void)user;                                                                                \
        if (strides[0] == sizeof(target_type) && strides[1] == sizeof(source_type)) {              \
            target_type *to = (target_type *)(void *)data[0];                                      \
            const source_type *from = (const source_type *)(const void *)data[1];                  \
            for (int64_t i = 0; i < count; i++) {                                                  \
                to[i] = (target_type)write(read(from[i]));                                         \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const source_type *from =                                                              \
                (const source_type *)(const void *)(data[1] + i * strides[1]);                     \
            *(target_type *)(void *)(data[0] + i * strides[0]) = (target_type)write(read(*from));  \
        }                                                                                          \
    }

#define FROM_INTEGERS(to, target_type, write)                                                      \
    CONVERSION(to##_from_int32, target_type, int32_t, PLAIN, write)                                \
    CONVERSION(to##_from_int64, target_type, int64_t, PLAIN, write)                                \
    CONVERSION(to##_from_uint8, target_type, uint8_t, PLAIN, write)

#define FROM_FLOATS(to, target_type, write)                                                        \
    CONVERSION(to##_from_float32, target_type, float, PLAIN, write)                                \
    CONVERSION(to##_from_float64, target_type, double, PLAIN, write)                               \
    CONVERSION(to##_from_bfloat16, target_type, uint16_t, opscope__from_bfloat16, write)           \
    CONVERSION(to##_from_float16, target_type, uint16_t, opscope__from_float16, write)

#define TO(to, target_type, write_integer, write_float)                                            \
    FROM_INTEGERS(to, target_type, write_integer)                                                  \
    FROM_FLOATS(to, target_type, write_float)

TO(float32, float, PLAIN, PLAIN)
TO(float64, double, PLAIN, PLAIN)
TO(int32, int32_t, PLAIN, AS_INT32)
TO(int64, int64_t, PLAIN, AS_INT64)
TO(uint8, uint8_t, PLAIN, AS_UINT8)
TO(truth, uint8_t, TRUTH, TRUTH)

#define BY_FLOAT_BFLOAT16(value) opscope__to_bfloat16((float)(value))
#define BY_FLOAT_FLOAT16(value) opscope__to_float16((float)(value))
TO(bfloat16, uint16_t, BY_FLOAT_BFLOAT16, BY_FLOAT_BFLOAT16)
TO(float16, uint16_t, BY_FLOAT_FLOAT16, BY_FLOAT_FLOAT16)

/* Same dtype: one loop per element width. */
CONVERSION(move_1, uint8_t, uint8_t, PLAIN, PLAIN)
CONVERSION(move_2, uint16_t, uint16_t, PLAIN, PLAIN)
CONVERSION(move_4, uint32_t, uint32_t, PLAIN, PLAIN)
CONVERSION(move_8, uint64_t, uint64_t, PLAIN, PLAIN)

#define ROW(to)                                                                                    \
    {                                                                                              \
        [OPSCOPE_FLOAT32] = to##_from_float32,   [OPSCOPE_FLOAT64] = to##_from_float64,            \
        [OPSCOPE_INT32] = to##_from_int32,       [OPSCOPE_INT64] = to##_from_int64,                \
        [OPSCOPE_UINT8] = to##_from_uint8,       [OPSCOPE_BOOL] = to##_from_uint8,                 \
        [OPSCOPE_BFLOAT16] = to##_from_bfloat16, [OPSCOPE_FLOAT16] = to##_from_float16,            \
    }

static const opscope__loop conversions[OPSCOPE_DTYPE_COUNT][OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = ROW(float32),   [OPSCOPE_FLOAT64] = ROW(float64),
    [OPSCOPE_INT32] = ROW(int32),       [OPSCOPE_INT64] = ROW(int64),
    [OPSCOPE_UINT8] = ROW(uint8),       [OPSCOPE_BOOL] = ROW(truth),
    [OPSCOPE_BFLOAT16] = ROW(bfloat16), [OPSCOPE_FLOAT16] = ROW(float16),
};

static opscope__loop loop_for(opscope_dtype to, opscope_dtype from)
{
    if (to != from) {
        return conversions[to][from];
    }
    switch (opscope_dtype_bytes(to)) {
    case 1:
        return move_1;
    case 2:
        return move_2;
    case 4:
        return move_4;
    default:
        return move_8;
    }
}

/* ---- tensors ---------------------------------------------------------------------------------- */

int opscope__copy(const opscope_tensor *target, const opscope_tensor *source)
{
    /* If both share memory, a read might return an element that was just written. */
    opscope_tensor *apart = NULL;
    if (target->storage == source->storage && target->count > 1 && source->count > 1) {
        int status = opscope__clone(source, &apart);
        if (status != OPSCOPE_OK) {
            return status;
        }
        source = apart;
    }
    struct opscope__iterator it;
    opscope__iterator_start(&it, target->dims, opscope__sizes(target));
    opscope__iterator_add(&it, target);
    opscope__iterator_add(&it, source);
    opscope__iterate(&it, loop_for(target->dtype, source->dtype), NULL, 1);
    opscope_tensor_release(apart);
    return OPSCOPE_OK;
}

int opscope__convert(const opscope_tensor *tensor, opscope_dtype dtype, opscope_tensor **out)
{
    opscope_tensor *made;
    int status = opscope__tensor_empty(tensor->dims, opscope__sizes(tensor), dtype, &made);
    if (status == OPSCOPE_OK) {
        opscope__copy(made, tensor);
        *out = made;
    }
    return status;
}

int opscope__clone(const opscope_tensor *tensor, opscope_tensor **out)
{
    return opscope__convert(tensor, tensor->dtype, out);
}

int opscope__contiguous(opscope_tensor *tensor, opscope_tensor **out)
{
    if (tensor->is_contiguous) {
        *out = opscope_tensor_retain(tensor);
        return OPSCOPE_OK;
    }
    return opscope__clone(tensor, out);
}

void opscope__number_as(const opscope_argument *number, opscope_dtype dtype, void *out)
{
    int64_t integer = number->as.integer;
    double real = number->as.real;
    bool is_real = number->kind == OPSCOPE_ARGUMENT_FLOAT;
    char *data[] = {out, is_real ? (char *)&real : (char *)&integer};
    int64_t strides[] = {0, 0};
    loop_for(dtype, is_real ? OPSCOPE_FLOAT64 : OPSCOPE_INT64)(data, strides, 1, NULL);
}

/* Valid numbers are below `most` and above `least`; for floats, these are the numbers that no
 * longer round to the largest one. */
static const struct {
    double least, most;
    const char *text;
} ranges[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = {-0x1.ffffffp127, 0x1.ffffffp127, "-3.4e38 to 3.4e38, inf and nan"},
    [OPSCOPE_FLOAT16] = {-65520, 65520, "-65504 to 65504, inf and nan"},
    [OPSCOPE_BFLOAT16] = {-0x1.ffp127, 0x1.ffp127, "-3.4e38 to 3.4e38, inf and nan"},
    [OPSCOPE_INT32] = {-0x1p31 - 1, 0x1p31, "-2147483648 to 2147483647"},
    /* The next double below -2^63. */
    [OPSCOPE_INT64] = {-0x1.0000000000001p63, 0x1p63,
                       "-9223372036854775808 to 9223372036854775807"},
    [OPSCOPE_UINT8] = {-1, 256, "0 to 255"},
};

int opscope__check_number(const char *name, const opscope_argument *number, opscope_dtype dtype)
{
    bool is_real = number->kind == OPSCOPE_ARGUMENT_FLOAT;
    double value = is_real ? number->as.real : (double)number->as.integer;
    bool is_endless = is_real && !(value - value == 0); /* inf or nan */
    if (ranges[dtype].text == NULL || (value > ranges[dtype].least && value < ranges[dtype].most) ||
        (is_endless && opscope_dtype_is_floating(dtype)) || (!is_real && dtype == OPSCOPE_INT64)) {
        return OPSCOPE_OK;
    }
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                               "%s: %.17g does not fit into %s, which holds %s", name, value,
                               opscope_dtype_name(dtype), ranges[dtype].text);
}

#define FILL(name, type)                                                                           \
    static void name(char *data, int64_t count, uint64_t element)                                  \
    {                                                                                              \
        type *to = (type *)(void *)data;                                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            to[i] = (type)element;                                                                 \
        }                                                                                          \
    }

FILL(fill_2, uint16_t)
FILL(fill_4, uint32_t)
FILL(fill_8, uint64_t)

/* Contiguous memory; `element` holds the bytes of the element. */
static void fill_whole(char *data, int64_t count, size_t bytes, const uint64_t *element)
{
    union {
        uint64_t eight;
        uint32_t four;
        uint16_t two;
        uint8_t one;
    } value = {*element};
    if (*element == 0 || bytes == 1) {
        memset(data, value.one, (size_t)count * bytes);
    } else if (bytes == 2) {
        fill_2(data, count, value.two);
    } else if (bytes == 4) {
        fill_4(data, count, value.four);
    } else {
        fill_8(data, count, value.eight);
    }
}

void opscope__fill(const opscope_tensor *tensor, const opscope_argument *number)
{
    uint64_t element = 0;
    opscope__number_as(number, tensor->dtype, &element);
    if (tensor->is_contiguous) {
        if (tensor->count > 0) {
            fill_whole(tensor->data, tensor->count,
                       opscope_dtype_bytes((opscope_dtype)tensor->dtype), &element);
        }
        return;
    }
    struct opscope__iterator it;
    opscope__iterator_start(&it, tensor->dims, opscope__sizes(tensor));
    opscope__iterator_add(&it, tensor);
    opscope__iterator_add_value(&it, &element);
    opscope__iterate(&it, loop_for(tensor->dtype, tensor->dtype), NULL, 1);
}

int opscope__check_store(const char *name, opscope_dtype to, opscope_dtype from)
{
    bool fits = opscope_dtype_is_floating(to) || !opscope_dtype_is_floating(from);
    fits &= to != OPSCOPE_BOOL || from == OPSCOPE_BOOL;
    return fits ? OPSCOPE_OK
                : opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                      "%s: a %s result cannot be written into a %s tensor", name,
                                      opscope_dtype_name(from), opscope_dtype_name(to));
}
