/* Convolution and pooling against naive loops: shapes, settings, borders, and errors. */
#include <stdlib.h>

#include "tensors.h"

struct setting {
    int64_t batch, groups, in, out; /* channels of a group */
    int64_t size[2], kernel[2], stride[2], padding[2], dilation[2];
};

static const struct setting SETTINGS[] = {
    {2, 1, 3, 4, {5, 6}, {3, 3}, {1, 1}, {0, 0}, {1, 1}},
    {1, 2, 2, 3, {6, 5}, {3, 2}, {2, 1}, {1, 2}, {1, 2}},
    {2, 1, 2, 2, {4, 7}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {2, 1, 2, 2, {4, 7}, {1, 1}, {2, 3}, {1, 0}, {1, 1}},
    {1, 3, 1, 1, {7, 7}, {3, 3}, {1, 1}, {2, 2}, {3, 1}},
    {1, 1, 1, 2, {3, 400}, {2, 3}, {1, 1}, {1, 4}, {1, 1}},
    {1, 1, 70, 2, {2, 700}, {2, 3}, {1, 1}, {0, 1}, {1, 1}}, /* strips of part of a row */
    {2, 1, 40, 9, {20, 21}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* strips of some rows */
    {1, 1, 2, 1, {70, 3}, {50, 2}, {1, 1}, {3, 1}, {1, 1}},  /* a kernel higher than a strip */
    {33, 1, 2, 3, {4, 4}, {2, 2}, {1, 1}, {0, 0}, {1, 1}},   /* more images than partial sums */
    {7, 1, 3, 19, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},   /* several images in a strip */
    {2, 1, 50, 13, {9, 33}, {3, 3}, {1, 1}, {1, 1}, {1, 1}}, /* channels in two blocks */
    {1, 1, 3, 17, {23, 35}, {5, 3}, {2, 2}, {2, 1}, {1, 1}}, /* kernel rows in two phases */
    {1, 1, 2, 5, {21, 40}, {5, 2}, {4, 2}, {1, 0}, {2, 3}},  /* phases by a common divisor */
    {2, 5, 1, 1, {20, 21}, {3, 3}, {1, 1}, {1, 1}, {1, 1}},  /* vectors of outputs */
    {1, 2, 4, 3, {12, 11}, {3, 4}, {1, 1}, {2, 5}, {1, 1}},  /* padding wider than the kernel */
    {1, 1, 2, 34, {1, 1}, {1, 1}, {1, 1}, {60, 1}, {1, 1}},  /* the image is mostly padding */
    {2, 3, 1, 1, {28, 29}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},  /* depthwise, in two by two phases */
    {2, 3, 1, 1, {13, 14}, {3, 3}, {2, 2}, {1, 1}, {1, 1}},  /* of half a vector each */
    {2, 3, 1, 2, {21, 70}, {5, 4}, {3, 2}, {2, 0}, {1, 1}},  /* a number of kernels of a channel */
    {1, 2, 1, 1, {9, 33}, {2, 3}, {4, 3}, {3, 7}, {3, 2}}, /* some phases without a kernel's row */
    {1, 2, 1, 3, {11, 2000}, {3, 3}, {2, 2}, {4, 5}, {1, 1}}, /* one row of a phase at a time */
    {1, 2, 1, 1, {140, 61}, {3, 2}, {2, 2}, {0, 1}, {2, 3}},  /* rows of a phase in two parts */
    {1, 2, 1, 1, {6, 5}, {2, 2}, {17, 3}, {9, 1}, {1, 1}},    /* too many phases */
    {1, 1, 1, 1, {3, 3}, {2, 2}, {2, 2}, {50, 40}, {60, 50}}, /* margins larger than the image */
};

static int64_t out_size(const struct setting *s, int dim)
{
    return (s->size[dim] + 2 * s->padding[dim] - s->dilation[dim] * (s->kernel[dim] - 1) - 1) /
               s->stride[dim] +
           1;
}

/* Calls `term` with the matching elements of output, input and weight. */
#define EACH_TERM(s, term)                                                                         \
    for (int64_t n = 0, out_at = 0; n < (s)->batch; n++) {                                         \
        for (int64_t o = 0; o < (s)->groups * (s)->out; o++) {                                     \
            for (int64_t i = 0; i < out_size((s), 0); i++) {                                       \
                for (int64_t j = 0; j < out_size((s), 1); j++, out_at++) {                         \
                    for (int64_t k = 0; k < (s)->in * (s)->kernel[0] * (s)->kernel[1]; k++) {      \
                        int64_t c = k / ((s)->kernel[0] * (s)->kernel[1]);                         \
                        int64_t ky = k / (s)->kernel[1] % (s)->kernel[0], kx = k % (s)->kernel[1]; \
                        int64_t y = i * (s)->stride[0] + ky * (s)->dilation[0] - (s)->padding[0];  \
                        int64_t x = j * (s)->stride[1] + kx * (s)->dilation[1] - (s)->padding[1];  \
                        int64_t channel = (n * (s)->groups + o / (s)->out) * (s)->in + c;          \
                        int64_t in_at = (channel * (s)->size[0] + y) * (s)->size[1] + x;           \
                        int64_t w_at = o * (s)->in * (s)->kernel[0] * (s)->kernel[1] + k;          \
                        if (y >= 0 && y < (s)->size[0] && x >= 0 && x < (s)->size[1]) {            \
                            term                                                                   \
                        }                                                                          \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

static double *doubles(int64_t count)
{
    double *out = calloc((size_t)count + 1, sizeof *out);
    CHECK(out != NULL);
    return out;
}

static void check_all(const opscope_tensor *tensor, const double *expected, double tolerance)
{
    for (int64_t i = 0; i < opscope_tensor_count(tensor); i++) {
        CHECK_NEAR(at(tensor, i), expected[i], tolerance);
    }
}

static void check_setting(const struct setting *s, opscope_dtype dtype, double tolerance)
{
    int64_t in_sizes[] = {s->batch, s->groups * s->in, s->size[0], s->size[1]};
    int64_t w_sizes[] = {s->groups * s->out, s->in, s->kernel[0], s->kernel[1]};
    int64_t out_sizes[] = {s->batch, s->groups * s->out, out_size(s, 0), out_size(s, 1)};
    opscope_tensor *input = numbers(1, dtype, 4, in_sizes), *weight = numbers(2, dtype, 4, w_sizes);
    opscope_tensor *bias = numbers(3, dtype, 1, w_sizes), *grad = numbers(4, dtype, 4, out_sizes);
    opscope_argument stride = {OPSCOPE_ARGUMENT_INTS, 2, {.integers = s->stride}};
    opscope_argument padding = {OPSCOPE_ARGUMENT_INTS, 2, {.integers = s->padding}};
    opscope_argument dilation = {OPSCOPE_ARGUMENT_INTS, 2, {.integers = s->dilation}};
    opscope_argument in_size = {OPSCOPE_ARGUMENT_INTS, 4, {.integers = in_sizes}};
    opscope_argument w_size = {OPSCOPE_ARGUMENT_INTS, 4, {.integers = w_sizes}};
    opscope_tensor *out =
        DO("core::conv2d", T(input), T(weight), T(bias), stride, padding, dilation, I(s->groups));
    opscope_tensor *to_input = DO("core::conv2d_input_backward", T(grad), T(weight), in_size,
                                  stride, padding, dilation, I(s->groups));
    opscope_tensor *to_weight = DO("core::conv2d_weight_backward", T(grad), T(input), w_size,
                                   stride, padding, dilation, I(s->groups));
    double *wanted = doubles(opscope_tensor_count(out)),
           *of_input = doubles(opscope_tensor_count(input));
    double *of_weight = doubles(opscope_tensor_count(weight));
    int64_t plane = out_sizes[2] * out_sizes[3];
    for (int64_t i = 0; i < opscope_tensor_count(out); i++) {
        wanted[i] = at(bias, i / plane % out_sizes[1]);
    }
    EACH_TERM(s, {
        wanted[out_at] += at(input, in_at) * at(weight, w_at);
        of_input[in_at] += at(grad, out_at) * at(weight, w_at);
        of_weight[w_at] += at(grad, out_at) * at(input, in_at);
    })
    CHECK_SIZES(out, out_sizes[0], out_sizes[1], out_sizes[2], out_sizes[3]);
    check_all(out, wanted, tolerance);
    check_all(to_input, of_input, tolerance);
    check_all(to_weight, of_weight, tolerance);
    opscope_tensor *made[] = {input, weight, bias, grad, out, to_input, to_weight};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        opscope_tensor_release(made[i]);
    }
    free(wanted);
    free(of_input);
    free(of_weight);
}

static void convolutions_and_their_gradients_are_the_naive_sums(void)
{
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        check_setting(&SETTINGS[i], OPSCOPE_FLOAT64, 1e-11);
        check_setting(&SETTINGS[i], OPSCOPE_FLOAT32, 2e-4);
    }
}

static void a_convolution_takes_any_strides_and_one_image(void)
{
    opscope_tensor *input = numbers(1, OPSCOPE_FLOAT64, SIZES(5, 6, 3));
    opscope_tensor *weight = numbers(2, OPSCOPE_FLOAT64, SIZES(2, 3, 3, 4));
    opscope_tensor *turned = DO("core::permute", T(input), L(2, 0, 1));
    opscope_tensor *swapped = DO("core::transpose", T(weight), I(1), I(2));
    opscope_tensor *direct = DO("core::conv2d", T(turned), T(swapped), N, L(1, 1), L(1, 0));
    opscope_tensor *flat = DO("core::contiguous", T(turned)),
                   *close = DO("core::contiguous", T(swapped));
    opscope_tensor *again = DO("core::conv2d", T(flat), T(close), N, L(1, 1), L(1, 0));
    CHECK_SIZES(direct, 2, 5, 3);
    for (int64_t i = 0; i < opscope_tensor_count(direct); i++) {
        CHECK(at(direct, i) == at(again, i));
    }
    opscope_tensor *made[] = {input, weight, turned, swapped, direct, flat, close, again};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        opscope_tensor_release(made[i]);
    }
}

static void no_images_and_no_channels_are_no_error(void)
{
    opscope_tensor *none = empty(OPSCOPE_FLOAT32, SIZES(0, 3, 5, 5));
    opscope_tensor *weight = numbers(1, OPSCOPE_FLOAT32, SIZES(4, 3, 3, 3));
    opscope_tensor *bare = numbers(1, OPSCOPE_FLOAT32, SIZES(2, 0, 5, 5));
    opscope_tensor *hollow = empty(OPSCOPE_FLOAT32, SIZES(4, 0, 3, 3)),
                   *bias = numbers(2, OPSCOPE_FLOAT32, SIZES(4));
    opscope_tensor *out = DO("core::conv2d", T(none), T(weight));
    opscope_tensor *to_input = DO("core::conv2d_input_backward", T(out), T(weight), L(0, 3, 5, 5));
    opscope_tensor *to_weight = DO("core::conv2d_weight_backward", T(out), T(none), L(4, 3, 3, 3));
    opscope_tensor *biased = DO("core::conv2d", T(bare), T(hollow), T(bias));
    opscope_tensor *pooled = DO("core::max_pool2d", T(none), L(2, 2));
    CHECK_SIZES(out, 0, 4, 3, 3);
    CHECK_SIZES(to_input, 0, 3, 5, 5);
    CHECK_SIZES(pooled, 0, 3, 2, 2);
    for (int64_t i = 0; i < opscope_tensor_count(to_weight); i++) {
        CHECK(at(to_weight, i) == 0);
    }
    for (int64_t i = 0; i < opscope_tensor_count(biased); i++) {
        CHECK(at(biased, i) == at(bias, i / 9 % 4));
    }
    opscope_tensor *made[] = {none, weight,   bare,      hollow, bias,
                              out,  to_input, to_weight, biased, pooled};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        opscope_tensor_release(made[i]);
    }
}

static void what_does_not_fit_or_is_too_large_is_refused(void)
{
    const int64_t most = INT32_MAX;
    opscope_tensor *input = numbers(1, OPSCOPE_FLOAT32, SIZES(1, 2, 4, 4));
    opscope_tensor *weight = numbers(2, OPSCOPE_FLOAT32, SIZES(2, 2, 3, 3));
    opscope_tensor *large = numbers(2, OPSCOPE_FLOAT32, SIZES(2, 2, 5, 3));
    opscope_tensor *no_image = empty(OPSCOPE_FLOAT32, SIZES(0, 2, 1, 4));
    opscope_tensor *none = DO("core::expand", T(no_image), L(0, 2, INT64_MAX - 8, 4));
    CHECK_HAS(FAIL("core::conv2d", T(input), T(large)),
              "spans 5 elements, more than the image: 4 with");
    CHECK_HAS(FAIL("core::conv2d", T(input), T(weight), N, L(1, 1), L(0, 0), L(most, most)),
              "more than the image");
    CHECK_HAS(FAIL("core::conv2d", T(input), T(weight), N, L(1, 1), L(most + 1, 0)), "padding is");
    /* The output would have 2^64 elements. */
    CHECK_HAS(FAIL("core::conv2d", T(input), T(weight), N, L(1, 1), L(most, most)),
              "exceed memory");
    CHECK_HAS(FAIL("core::conv2d", T(none), T(weight), N, L(1, 1), L(9, 0)), "is too large");
    opscope_tensor *tiny = numbers(1, OPSCOPE_FLOAT32, SIZES(1, 2, 1, 1));
    CHECK_HAS(FAIL("core::conv2d_weight_backward", T(tiny), T(input), L(2, 2, most, most), L(1, 1),
                   L(most / 2, most / 2)),
              "conv2d_weight_backward");
    CHECK_HAS(FAIL("core::conv2d_weight_backward", T(tiny), T(input), L(-2, 2, 4, 4)),
              "expected floats");
    CHECK_HAS(FAIL("core::conv2d_input_backward", T(tiny), T(weight), L(1, 2, -3, 3)),
              "than the image");
    CHECK_HAS(FAIL("core::conv2d_input_backward", T(tiny), T(weight), L(3, 3)), "expected floats");
    CHECK_HAS(FAIL("core::max_pool2d", T(input), L(5, 1)), "a kernel of size 5");
    CHECK_HAS(FAIL("core::max_pool2d", T(input), L(2, 2, 2)), "kernel_size is [2, 2, 2]");
    CHECK_HAS(FAIL("core::adaptive_avg_pool2d", T(input), L(most, most)),
              "core::adaptive_avg_pool2d");
    opscope_tensor *places = empty(OPSCOPE_INT32, SIZES(1, 2, 1, 1));
    put(places, 0, 15);
    put(places, 1, 16);
    CHECK_HAS(FAIL("core::max_pool2d_backward", T(tiny), T(places), L(1, 2, 4, 4)),
              "outside of images");
    CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_INDEX);
    opscope_tensor *made[] = {input, weight, large, no_image, none, tiny, places};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        opscope_tensor_release(made[i]);
    }
}

static void pools_reach_over_the_border_as_far_as_they_may(void)
{
    opscope_tensor *a = empty(OPSCOPE_FLOAT64, SIZES(1, 5, 5));
    for (int64_t i = 0; i < 25; i++) {
        put(a, i, (double)(i % 7));
    }
    opscope_tensor *most =
        DO("core::max_pool2d", T(a), L(3, 3), L(2, 2), L(1, 1), L(1, 1), B(true));
    opscope_tensor *mean =
        DO("core::avg_pool2d", T(a), L(2, 2), L(2, 2), L(0, 0), B(true), B(false));
    opscope_tensor *whole = DO("core::adaptive_avg_pool2d", T(a), L(1, 1));
    CHECK_SIZES(most, 1, 3, 3);
    CHECK_SIZES(mean, 1, 3, 3);
    CHECK(at(most, 0) == 6 && at(most, 8) == 5 && at(most, 4) == 6);
    CHECK(at(mean, 8) == at(a, 24) && at(mean, 2) == (at(a, 4) + at(a, 9)) / 2);
    double sum = 0;
    for (int64_t i = 0; i < 25; i++) {
        sum += at(a, i);
    }
    CHECK_NEAR(at(whole, 0), sum / 25, 1e-12);
    opscope_tensor *made[] = {a, most, mean, whole};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        opscope_tensor_release(made[i]);
    }
}

int main(void)
{
    RUN(convolutions_and_their_gradients_are_the_naive_sums);
    RUN(a_convolution_takes_any_strides_and_one_image);
    RUN(no_images_and_no_channels_are_no_error);
    RUN(what_does_not_fit_or_is_too_large_is_refused);
    RUN(pools_reach_over_the_border_as_far_as_they_may);
    return 0;
}
