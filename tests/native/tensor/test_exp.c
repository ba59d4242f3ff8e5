/* exp of float32, a formula of this library: its precision everywhere, its ends, and that elements
 * do not affect their neighbours. */
#include "tensors.h"

enum { STEP = 40009, COUNT = COUNT_UP_TO_INFINITY(STEP) };

static void errors_are_below_one_and_a_quarter_units_in_the_last_place(void)
{
    opscope_tensor *a = all_magnitudes(STEP, COUNT);
    opscope_tensor *out = DO("core::exp", T(a));
    for (int i = 0; i < COUNT; i++) {
        double is = at(out, i), wanted = exp(at(a, i));
        double unit = unit_in_last_place(wanted);
        CHECK(isinf((float)wanted) ? is == INFINITY : fabs(is - wanted) < 1.25 * unit);
    }
    opscope_tensor_release(out);
    opscope_tensor_release(a);
}

static void ends_are_exact(void)
{
    static const double cases[][2] = {{0, 1},
                                      {-0.0, 1},
                                      {0x1p-149, 1},
                                      {88.75, INFINITY},
                                      {0x1.fffffep127, INFINITY},
                                      {INFINITY, INFINITY},
                                      {-104, 0},
                                      {-0x1.fffffep127, 0},
                                      {-INFINITY, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(40));
        put(a, 17, cases[i][0]);
        opscope_tensor *out = DO("core::exp", T(a));
        CHECK(at(out, 17) == cases[i][1]);
        opscope_tensor_release(out);
        opscope_tensor_release(a);
    }
}

/* NaN of any payload stays NaN; what is computed by another loop gives its neighbours the same
 * bits, in place as well. */
static void elements_do_not_affect_others(void)
{
    static const int counts[] = {1, 15, 255, 256, 511, 512, 513, 800, 1537};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const int count = counts[c];
        opscope_tensor *a = numbers(2, OPSCOPE_FLOAT32, SIZES(count));
        opscope_tensor *wanted = DO("core::exp", T(a));
        for (int place = 0; place < count; place += 97) {
            opscope_tensor *other = DO("core::clone", T(a));
            uint32_t nan = 0x7f800155;
            memcpy(element(other, place), &nan, sizeof nan);
            opscope_tensor *out = DO("core::exp", T(other));
            opscope_tensor *same = DO("core::exp_", T(other));
            for (int i = 0; i < count; i++) {
                CHECK(i == place ? isnan(at(out, i)) : at(out, i) == at(wanted, i));
                CHECK(i == place ? isnan(at(same, i)) : at(same, i) == at(wanted, i));
            }
            opscope_tensor_release(same);
            opscope_tensor_release(out);
            opscope_tensor_release(other);
        }
        opscope_tensor_release(wanted);
        opscope_tensor_release(a);
    }
}

int main(void)
{
    RUN(errors_are_below_one_and_a_quarter_units_in_the_last_place);
    RUN(ends_are_exact);
    RUN(elements_do_not_affect_others);
    return 0;
}
