/* tests/native/tensor/tensors.h -- tensors for tests: made from lists, read back as doubles. */
#ifndef OPSCOPE_TESTS_TENSORS_H
#define OPSCOPE_TESTS_TENSORS_H

#include <math.h>

#include "../check.h"
#include "opscope/autograd.h"

#define T(value) ((opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = (value)}})
#define I(value) ((opscope_argument){OPSCOPE_ARGUMENT_INT, 0, {.integer = (value)}})
#define B(value) ((opscope_argument){OPSCOPE_ARGUMENT_BOOL, 0, {.integer = (value)}})
#define R(value) ((opscope_argument){OPSCOPE_ARGUMENT_FLOAT, 0, {.real = (value)}})
#define N ((opscope_argument){OPSCOPE_ARGUMENT_NONE, 0, {.integer = 0}})
#define L(...)                                                                                     \
    ((opscope_argument){OPSCOPE_ARGUMENT_INTS,                                                     \
                        sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                        \
                        {.integers = (const int64_t[]){__VA_ARGS__}}})
#define SIZES(...)                                                                                 \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[])                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
/* The first output of an operator; the call must succeed. */
#define DO(name, ...)                                                                              \
    call(name, (const opscope_argument[]){__VA_ARGS__},                                            \
         sizeof((const opscope_argument[]){__VA_ARGS__}) / sizeof(opscope_argument))
/* The error of a call that must fail. */
#define FAIL(name, ...)                                                                            \
    failure(name, (const opscope_argument[]){__VA_ARGS__},                                         \
            sizeof((const opscope_argument[]){__VA_ARGS__}) / sizeof(opscope_argument))

static inline opscope_tensor *call(const char *name, const opscope_argument *arguments,
                                   size_t count)
{
    const opscope_operator *op = opscope_operator_find(name);
    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL};
    if (op == NULL || opscope_call(op, arguments, count, outputs) != OPSCOPE_OK) {
        fprintf(stderr, "%s failed: %s\n", name, op != NULL ? opscope_tensor_error() : "unknown");
        _exit(1);
    }
    for (int i = 1; i < OPSCOPE_OUTPUT_LIMIT; i++) {
        opscope_tensor_release(outputs[i]);
    }
    return outputs[0];
}

static inline const char *failure(const char *name, const opscope_argument *arguments, size_t count)
{
    opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL};
    CHECK(opscope_operator_find(name) != NULL);
    CHECK(opscope_call(opscope_operator_find(name), arguments, count, outputs) < 0);
    return opscope_tensor_error();
}

static inline opscope_tensor *empty(opscope_dtype dtype, int dims, const int64_t *sizes)
{
    opscope_tensor *out = NULL;
    CHECK(opscope_tensor_empty(dims, sizes, dtype, NULL, &out) == OPSCOPE_OK);
    return out;
}

/* Element `index` in row-major order, whatever the strides. */
static inline void *element(const opscope_tensor *tensor, int64_t index)
{
    int64_t offset = 0;
    for (int i = opscope_tensor_dims(tensor) - 1; i >= 0; i--) {
        int64_t size = opscope_tensor_sizes(tensor)[i];
        offset += index % size * opscope_tensor_strides(tensor)[i];
        index /= size;
    }
    return (char *)opscope_tensor_data(tensor) +
           offset * (int64_t)opscope_dtype_bytes(opscope_tensor_dtype(tensor));
}

static inline double at(const opscope_tensor *tensor, int64_t index)
{
    const void *data = element(tensor, index);
    switch (opscope_tensor_dtype(tensor)) {
    case OPSCOPE_FLOAT32:
        return (double)*(const float *)data;
    case OPSCOPE_FLOAT64:
        return *(const double *)data;
    case OPSCOPE_INT32:
        return (double)*(const int32_t *)data;
    case OPSCOPE_INT64:
        return (double)*(const int64_t *)data;
    default:
        return (double)*(const uint8_t *)data;
    }
}

static inline void put(opscope_tensor *tensor, int64_t index, double value)
{
    void *data = element(tensor, index);
    switch (opscope_tensor_dtype(tensor)) {
    case OPSCOPE_FLOAT32:
        *(float *)data = (float)value;
        break;
    case OPSCOPE_FLOAT64:
        *(double *)data = value;
        break;
    case OPSCOPE_INT32:
        *(int32_t *)data = (int32_t)value;
        break;
    case OPSCOPE_INT64:
        *(int64_t *)data = (int64_t)value;
        break;
    default:
        *(uint8_t *)data = (uint8_t)value;
    }
}

/* Repeatable numbers in (-2, 2), a different sequence for each seed. */
static inline double number(uint64_t seed, int64_t index)
{
    uint64_t x = (seed * 1000003 + (uint64_t)index + 1) * 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-53 * 4 - 2;
}

static inline opscope_tensor *numbers(uint64_t seed, opscope_dtype dtype, int dims,
                                      const int64_t *sizes)
{
    opscope_tensor *out = empty(dtype, dims, sizes);
    for (int64_t i = 0; i < opscope_tensor_count(out); i++) {
        double value = number(seed, i);
        put(out, i,
            opscope_dtype_is_floating(dtype) ? value
            : dtype == OPSCOPE_BOOL          ? value > 0
                                             : floor(value * 10) + 20);
    }
    return out;
}

/* `count` float32 of both signs, in steps of this many floats, from 0 up to infinity. With
 * COUNT_UP_TO_INFINITY all there are, so that every part of a vector gets all magnitudes. */
#define COUNT_UP_TO_INFINITY(step) (2 * (0x7f800000 / (step) + 1))
static inline opscope_tensor *all_magnitudes(uint32_t step, int64_t count)
{
    opscope_tensor *out = empty(OPSCOPE_FLOAT32, 1, &count);
    uint32_t *bits = opscope_tensor_data(out);
    for (int64_t i = 0; i < count; i++) {
        bits[i] = (uint32_t)(i / 2) * step | (uint32_t)(i % 2) << 31;
    }
    return out;
}

/* The distance of neighbouring float32 at that number. */
static inline double unit_in_last_place(double value)
{
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, exponent > -125 ? exponent - 24 : -149);
}

static inline void release(opscope_tensor **tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        opscope_tensor_release(tensors[i]);
    }
}

#define RELEASE(...)                                                                               \
    release((opscope_tensor *[]){__VA_ARGS__},                                                     \
            sizeof((opscope_tensor *[]){__VA_ARGS__}) / sizeof(opscope_tensor *))

static inline bool near(double is, double wanted, double tolerance)
{
    return is == wanted || (is != is && wanted != wanted) ||
           fabs(is - wanted) <= tolerance * (1 + fabs(wanted));
}

#define CHECK_NEAR(is, wanted, tolerance)                                                          \
    do {                                                                                           \
        double check_is = (is), check_wanted = (wanted);                                           \
        if (!near(check_is, check_wanted, tolerance)) {                                            \
            fprintf(stderr, "%s:%d: %s is %.9g, not %.9g\n", __FILE__, __LINE__, #is, check_is,    \
                    check_wanted);                                                                 \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define CHECK_SIZES(tensor, ...)                                                                   \
    do {                                                                                           \
        int64_t check_sizes[] = {__VA_ARGS__};                                                     \
        CHECK_EQUAL(opscope_tensor_dims(tensor), sizeof check_sizes / sizeof *check_sizes);        \
        CHECK(memcmp(opscope_tensor_sizes(tensor), check_sizes, sizeof check_sizes) == 0);         \
    } while (0)

#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL) {                                                      \
            fprintf(stderr, "%s:%d: \"%s\" does not say \"%s\"\n", __FILE__, __LINE__, (text),     \
                    (part));                                                                       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#endif
