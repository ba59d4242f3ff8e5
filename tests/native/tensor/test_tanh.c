/* tanh of float32, a formula of this library: its precision everywhere, its ends, its bits. */
#include "tensors.h"

enum { STEP = 64951, COUNT = COUNT_UP_TO_INFINITY(STEP) };

static void errors_are_below_four_units_in_the_last_place(void)
{
    opscope_tensor *a = all_magnitudes(STEP, COUNT);
    opscope_tensor *out = DO("core::tanh", T(a));
    for (int i = 0; i < COUNT; i++) {
        double is = at(out, i), wanted = tanh(at(a, i));
        double unit = unit_in_last_place(wanted);
        CHECK(fabs(is - wanted) < 4 * unit);
        CHECK(fabs(is) <= 1);
        CHECK_EQUAL(signbit(is) != 0, i % 2);
    }
    opscope_tensor_release(out);
    opscope_tensor_release(a);
}

/* Small numbers stay unchanged, down to the last denormal and the sign of zero. */
static void ends_are_exact(void)
{
    static const double cases[][2] = {{0, 0},
                                      {0x1p-149, 0x1p-149},
                                      {0x1.8p-140, 0x1.8p-140},
                                      {0x1p-126, 0x1p-126},
                                      {0x1.fffffep-14, 0x1.fffffep-14},
                                      {9, 1},
                                      {9.25, 1},
                                      {44.5, 1},
                                      {89, 1},
                                      {0x1p64, 1},
                                      {0x1.fffffep127, 1},
                                      {INFINITY, 1}};
    enum { CASES = sizeof cases / sizeof *cases };
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(2 * CASES + 2));
    for (int i = 0; i < CASES; i++) {
        put(a, 2 * i, cases[i][0]);
        put(a, 2 * i + 1, -cases[i][0]);
    }
    put(a, 2 * CASES, NAN);
    put(a, 2 * CASES + 1, -NAN);
    opscope_tensor *out = DO("core::tanh", T(a));
    for (int i = 0; i < 2 * CASES; i++) {
        double is = at(out, i);
        CHECK(fabs(is) == cases[i / 2][1]);
        CHECK_EQUAL(signbit(is) != 0, i % 2);
    }
    CHECK(isnan(at(out, 2 * CASES)) && isnan(at(out, 2 * CASES + 1)));
    opscope_tensor_release(out);
    opscope_tensor_release(a);
}

static uint64_t checksum(const opscope_tensor *tensor)
{
    uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a, one word at a time */
    for (int64_t i = 0; i < opscope_tensor_count(tensor); i++) {
        sum = (sum ^ *(const uint32_t *)element(tensor, i)) * 0x100000001b3u;
    }
    return sum;
}

/* All parts of a vector compute alike, whatever the compiler: the result is one precomputed number,
 * or another where the CPU level multiplies and adds in one instruction. */
static void bits_are_the_same_in_every_place(void)
{
    opscope_tensor *a = all_magnitudes(STEP, COUNT);
    opscope_tensor *out = DO("core::tanh", T(a));
    CHECK(checksum(out) == 0xf009ad64617f7a7b || checksum(out) == 0x21c9b3705e4348bd);
    for (int64_t begin = 0; begin < 20; begin++) {
        for (int64_t count = 1; count < 80; count++) {
            for (int64_t step = 1; step < 3; step++) {
                /* The range where tanh is neither its argument nor 1. */
                int64_t first = COUNT / 2 + begin, last = first + count * step;
                opscope_tensor *some = DO("core::slice", T(a), I(0), I(first), I(last), I(step));
                opscope_tensor *wanted =
                    DO("core::slice", T(out), I(0), I(first), I(last), I(step));
                opscope_tensor *is = DO("core::tanh", T(some));
                CHECK_EQUAL(checksum(is), checksum(wanted));
                opscope_tensor_release(is);
                opscope_tensor_release(wanted);
                opscope_tensor_release(some);
            }
        }
    }
    opscope_tensor_release(out);
    opscope_tensor_release(a);
}

int main(void)
{
    RUN(errors_are_below_four_units_in_the_last_place);
    RUN(ends_are_exact);
    RUN(bits_are_the_same_in_every_place);
    return 0;
}
