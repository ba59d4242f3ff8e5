/* tensor/ops/elementwise/exp.c -- core::exp: the exponential function. */
#include "tensor/ops/elementwise/exponential.h"
#include "tensor/ops/elementwise/functions.h"

enum {
    STRETCH = 256, /* elements, of which one that is not normal slows down only these */
    AHEAD = 2 * STRETCH,
    LINE = 64 / sizeof(float)
};

static inline uint32_t magnitude(float x)
{
    return opscope__float_bits(x) & INT32_MAX;
}

static uint32_t largest_magnitude(const float *x, int64_t count)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    }
    return largest;
}

static void any_stretch(float *out, const float *x, int64_t count)
{
    OPSCOPE__INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        out[i] = opscope__exp_any(x[i]);
    }
}

static void normal_stretch(float *out, const float *x, int64_t count)
{
    OPSCOPE__INDEPENDENT
    for (int64_t i = 0; i < count; i++) {
        out[i] = opscope__exp_normal(x[i]);
    }
}

/* A whole stretch of normal elements, and the largest magnitude of the next one. Looking ahead also
 * brings that stretch into the first-level cache while this one is computed. */
static uint32_t normal_stretch_with_next(float *out, const float *x)
{
    uint32_t largest = 0;
    OPSCOPE__INDEPENDENT
    for (int64_t i = 0; i < STRETCH; i++) {
        const uint32_t ahead = magnitude(x[i + STRETCH]);
        largest = ahead > largest ? ahead : largest;
        out[i] = opscope__exp_normal(x[i]);
    }
    return largest;
}

/* Brings the lines of memory that the stretch after the next will write into the caches: a store
 * that misses them holds up the computation. On a Xeon with AVX-512, exp of 16 MB is 1.05 to 1.4
 * times as fast with it; on Zen 3 it makes no difference. */
static void fetch_results(const float *out)
{
    for (int64_t i = 0; i < STRETCH; i += LINE) {
        __builtin_prefetch(out + AHEAD + i, 1);
    }
}

/* The functions for normal elements give the bits of the one for any. */
static void exp_all(float *out, const float *x, int64_t count)
{
    const uint32_t limit = opscope__float_bits(OPSCOPE__EXP_NORMAL);
    uint32_t largest = largest_magnitude(x, count < STRETCH ? count : STRETCH);
    for (; count >= 2 * STRETCH; count -= STRETCH, out += STRETCH, x += STRETCH) {
        fetch_results(out);
        if (largest <= limit) {
            largest = normal_stretch_with_next(out, x);
        } else {
            any_stretch(out, x, STRETCH);
            largest = largest_magnitude(x + STRETCH, STRETCH);
        }
    }
    if (largest_magnitude(x, count) <= limit) {
        normal_stretch(out, x, count);
    } else {
        any_stretch(out, x, count);
    }
}

static void exp_float32(char *const *data, const int64_t *strides, int64_t count, void *user)
{
    (void)user;
    if (strides[0] == sizeof(float) && strides[1] == sizeof(float)) {
        exp_all((float *)(void *)data[0], (const float *)(const void *)data[1], count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        OPSCOPE__AT(float, 0) = opscope__exp_any(OPSCOPE__AT(const float, 1));
    }
}

OPSCOPE__UNARY(exp_float64, double, double, exp(a))

OPSCOPE__FORWARD(1, 0, .loops = {OPSCOPE__FLOAT_LOOPS(exp)}, .cost = 10, .needs_floats = true)

static opscope_tensor *slope(struct opscope__formula *f, opscope_tensor *x)
{
    (void)f;
    return x;
}

OPSCOPE__SLOPE(saved, slope)

const struct opscope__operator_spec OPSCOPE__OPERATOR(exp) = {
    .schema = "exp(Tensor self) -> Tensor",
    .doc = "e to the power of each element. Integers and bools are computed in float32. "
           "Definition: C exp.",
    .samples = "t(3, 4)",
    OPSCOPE__FUNCTION_SPEC,
    .saves_outputs = 1,
};
