/* tensor/ops/elementwise/loops.h -- loops over elements, written once and vectorised by the
 * compiler.
 *
 * An operator gives an expression in `a`, `b`, `c` (the operands) and `n` (its first number, as an
 * element of the dtype). The output may occupy exactly the memory of an operand. Expressions call
 * only those functions of the C library that have vector versions (libmvec).
 */
#ifndef OPSCOPE_TENSOR_OPS_ELEMENTWISE_LOOPS_H
#define OPSCOPE_TENSOR_OPS_ELEMENTWISE_LOOPS_H

#include <math.h>

#include "tensor/kernels/elementwise.h"

/* clang checks for overlaps at run time instead, and with the pragma would warn of each loop that
 * it does not vectorise. */
#if defined(__clang__)
#define OPSCOPE__INDEPENDENT
#else
#define OPSCOPE__INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Vector versions: functions that glibc has had since 2.22, and those of 2.35. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define OPSCOPE__VECTOR __attribute__((simd("notinbranch"), const))
float expf(float) OPSCOPE__VECTOR;
double exp(double) OPSCOPE__VECTOR;
float logf(float) OPSCOPE__VECTOR;
double log(double) OPSCOPE__VECTOR;
float sinf(float) OPSCOPE__VECTOR;
double sin(double) OPSCOPE__VECTOR;
float cosf(float) OPSCOPE__VECTOR;
double cos(double) OPSCOPE__VECTOR;
float powf(float, float) OPSCOPE__VECTOR;
double pow(double, double) OPSCOPE__VECTOR;
#if __GLIBC_PREREQ(2, 35)
double tanh(double) OPSCOPE__VECTOR;
float erff(float) OPSCOPE__VECTOR;
double erf(double) OPSCOPE__VECTOR;
#endif
#endif

#define OPSCOPE__AT(type, operand) (*(type *)(void *)(data[operand] + i * strides[operand]))

#define OPSCOPE__UNARY(name, out_type, type, expression)                                           \
    static void name(char *const *data, const int64_t *strides, int64_t count, void *user)         \
    {                                                                                              \
        const type n = *(const type *)user;                                                        \
        (void)n;                                                                                   \
        if (strides[0] == sizeof(out_type) && strides[1] == sizeof(type)) {                        \
            out_type *out = (out_type *)(void *)data[0];                                           \
            const type *in = (const type *)(const void *)data[1];                                  \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const type a = in[i];                                                              \
                out[i] = (out_type)(expression);                                                   \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const type a = OPSCOPE__AT(const type, 1);                                             \
            OPSCOPE__AT(out_type, 0) = (out_type)(expression);                                     \
        }                                                                                          \
    }

#define OPSCOPE__BINARY(name, out_type, type, expression)                                          \
    static void name(char *const *data, const int64_t *strides, int64_t count, void *user)         \
    {                                                                                              \
        const type n = *(const type *)user;                                                        \
        (void)n;                                                                                   \
        const int64_t size = sizeof(type);                                                         \
        out_type *out = (out_type *)(void *)data[0];                                               \
        const type *x = (const type *)(const void *)data[1];                                       \
        const type *y = (const type *)(const void *)data[2];                                       \
        if (strides[0] != sizeof(out_type)) {                                                      \
        } else if (strides[1] == size && strides[2] == size) {                                     \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const type a = x[i], b = y[i];                                                     \
                out[i] = (out_type)(expression);                                                   \
            }                                                                                      \
            return;                                                                                \
        } else if (strides[1] == size && strides[2] == 0) {                                        \
            const type b = *y;                                                                     \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const type a = x[i];                                                               \
                out[i] = (out_type)(expression);                                                   \
            }                                                                                      \
            return;                                                                                \
        } else if (strides[1] == 0 && strides[2] == size) {                                        \
            const type a = *x;                                                                     \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const type b = y[i];                                                               \
                out[i] = (out_type)(expression);                                                   \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const type a = OPSCOPE__AT(const type, 1), b = OPSCOPE__AT(const type, 2);             \
            OPSCOPE__AT(out_type, 0) = (out_type)(expression);                                     \
        }                                                                                          \
    }

/* `scaled` has a factor n, and `plain` is the same where n is 1: a product fewer. */
#define OPSCOPE__BINARY_SCALED(name, type, plain, scaled)                                          \
    OPSCOPE__BINARY(name##_plain, type, type, plain)                                               \
    OPSCOPE__BINARY(name##_scaled, type, type, scaled)                                             \
    static void name(char *const *data, const int64_t *strides, int64_t count, void *user)         \
    {                                                                                              \
        if (*(const type *)user == 1) {                                                            \
            name##_plain(data, strides, count, user);                                              \
        } else {                                                                                   \
            name##_scaled(data, strides, count, user);                                             \
        }                                                                                          \
    }

/* Operand 1 has `first_type`: bool for a condition, else `type`. */
#define OPSCOPE__TERNARY(name, out_type, first_type, type, expression)                             \
    static void name(char *const *data, const int64_t *strides, int64_t count, void *user)         \
    {                                                                                              \
        (void)user;                                                                                \
        if (strides[0] == sizeof(out_type) && strides[1] == sizeof(first_type) &&                  \
            strides[2] == 0 && strides[3] == 0) {                                                  \
            out_type *out = (out_type *)(void *)data[0];                                           \
            const first_type *in = (const first_type *)(const void *)data[1];                      \
            const type b = *(const type *)(const void *)data[2];                                   \
            const type c = *(const type *)(const void *)data[3];                                   \
            OPSCOPE__INDEPENDENT                                                                   \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const first_type a = in[i];                                                        \
                out[i] = (out_type)(expression);                                                   \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const first_type a = OPSCOPE__AT(const first_type, 1);                                 \
            const type b = OPSCOPE__AT(const type, 2), c = OPSCOPE__AT(const type, 3);             \
            OPSCOPE__AT(out_type, 0) = (out_type)(expression);                                     \
        }                                                                                          \
    }

/* One loop for each dtype that computes, and the table entries for them. */
#define OPSCOPE__UNARY_NUMBERS(name, expression)                                                   \
    OPSCOPE__UNARY(name##_float32, float, float, expression)                                       \
    OPSCOPE__UNARY(name##_float64, double, double, expression)                                     \
    OPSCOPE__UNARY(name##_int32, int32_t, int32_t, expression)                                     \
    OPSCOPE__UNARY(name##_int64, int64_t, int64_t, expression)                                     \
    OPSCOPE__UNARY(name##_uint8, uint8_t, uint8_t, expression)

#define OPSCOPE__BINARY_NUMBERS(name, expression)                                                  \
    OPSCOPE__BINARY(name##_float32, float, float, expression)                                      \
    OPSCOPE__BINARY(name##_float64, double, double, expression)                                    \
    OPSCOPE__BINARY(name##_int32, int32_t, int32_t, expression)                                    \
    OPSCOPE__BINARY(name##_int64, int64_t, int64_t, expression)                                    \
    OPSCOPE__BINARY(name##_uint8, uint8_t, uint8_t, expression)

#define OPSCOPE__BINARY_TRUTHS(name, expression)                                                   \
    OPSCOPE__BINARY(name##_float32, uint8_t, float, expression)                                    \
    OPSCOPE__BINARY(name##_float64, uint8_t, double, expression)                                   \
    OPSCOPE__BINARY(name##_int32, uint8_t, int32_t, expression)                                    \
    OPSCOPE__BINARY(name##_int64, uint8_t, int64_t, expression)                                    \
    OPSCOPE__BINARY(name##_uint8, uint8_t, uint8_t, expression)

#define OPSCOPE__UNARY_INTEGERS(name, expression)                                                  \
    OPSCOPE__UNARY(name##_int32, int32_t, int32_t, expression)                                     \
    OPSCOPE__UNARY(name##_int64, int64_t, int64_t, expression)                                     \
    OPSCOPE__UNARY(name##_uint8, uint8_t, uint8_t, expression)

#define OPSCOPE__BINARY_INTEGERS(name, expression)                                                 \
    OPSCOPE__BINARY(name##_int32, int32_t, int32_t, expression)                                    \
    OPSCOPE__BINARY(name##_int64, int64_t, int64_t, expression)                                    \
    OPSCOPE__BINARY(name##_uint8, uint8_t, uint8_t, expression)

#define OPSCOPE__UNARY_TRUTHS(name, expression)                                                    \
    OPSCOPE__UNARY(name##_float32, uint8_t, float, expression)                                     \
    OPSCOPE__UNARY(name##_float64, uint8_t, double, expression)                                    \
    OPSCOPE__UNARY(name##_int32, uint8_t, int32_t, expression)                                     \
    OPSCOPE__UNARY(name##_int64, uint8_t, int64_t, expression)                                     \
    OPSCOPE__UNARY(name##_uint8, uint8_t, uint8_t, expression)

#define OPSCOPE__FLOAT_LOOPS(name)                                                                 \
    [OPSCOPE_FLOAT32] = name##_float32, [OPSCOPE_FLOAT64] = name##_float64
#define OPSCOPE__INTEGER_LOOPS(name)                                                               \
    [OPSCOPE_INT32] = name##_int32, [OPSCOPE_INT64] = name##_int64, [OPSCOPE_UINT8] = name##_uint8
#define OPSCOPE__NUMBER_LOOPS(name) OPSCOPE__FLOAT_LOOPS(name), OPSCOPE__INTEGER_LOOPS(name)
#define OPSCOPE__ALL_LOOPS(name) OPSCOPE__NUMBER_LOOPS(name), [OPSCOPE_BOOL] = name##_uint8

/* The whole forward of an operator that is one pass over elements: its first `operand_count`
 * arguments are the operands, the `number_count` after them the numbers. The other arguments of the
 * macro are fields of struct opscope__elementwise. The operator's spec names it: `.elementwise =
 * &elementwise`. */
#define OPSCOPE__FORWARD(operand_count, number_count, ...)                                         \
    static const struct opscope__elementwise elementwise = {                                       \
        .operands = operand_count, .numbers = number_count, __VA_ARGS__};                          \
    static int forward(struct opscope__call *call, const opscope_argument *arguments,              \
                       opscope_tensor **outputs)                                                   \
    {                                                                                              \
        return opscope__elementwise(call, &elementwise, arguments, operand_count,                  \
                                    &arguments[operand_count], number_count, outputs);             \
    }

#endif
