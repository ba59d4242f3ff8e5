/* Reductions and matrix products against naive loops. */
#include "opscope/fork.h"
#include "tensors.h"

struct expected {
    double sum, largest, smallest, product;
    int64_t count;
};

/* Folds with a loop over all elements, and computes each one's output element from its indices. */
static void fold(const opscope_tensor *a, uint32_t set, struct expected *out)
{
    int dims = opscope_tensor_dims(a);
    for (int64_t i = 0; i < opscope_tensor_count(a); i++) {
        int64_t place = 0, scale = 1, rest = i;
        for (int j = dims - 1; j >= 0; j--) {
            int64_t size = opscope_tensor_sizes(a)[j];
            if ((set >> j & 1) == 0) {
                place += rest % size * scale;
                scale *= size;
            }
            rest /= size;
        }
        struct expected *into = &out[place];
        double x = at(a, i);
        into->sum += x;
        into->product = into->count == 0 ? x : into->product * x;
        into->largest = into->count == 0 || x > into->largest ? x : into->largest;
        into->smallest = into->count == 0 || x < into->smallest ? x : into->smallest;
        into->count++;
    }
}

static opscope_tensor *reduce(const char *name, opscope_tensor *a, uint32_t set, bool keep)
{
    int64_t dims[OPSCOPE_DIM_LIMIT];
    uint32_t count = 0;
    for (int i = 0; i < opscope_tensor_dims(a); i++) {
        if ((set >> i & 1) != 0) {
            dims[count++] = i;
        }
    }
    return DO(name, T(a), ((opscope_argument){OPSCOPE_ARGUMENT_INTS, count, {.integers = dims}}),
              B(keep));
}

static void check_reductions(opscope_tensor *a, uint32_t set, double tolerance)
{
    static struct expected expected[4096];
    memset(expected, 0, sizeof expected);
    fold(a, set, expected);
    opscope_tensor *sum = reduce("core::sum", a, set, false);
    opscope_tensor *largest = reduce("core::amax", a, set, true);
    opscope_tensor *smallest = reduce("core::amin", a, set, false);
    opscope_tensor *product = reduce("core::prod", a, set, false);
    CHECK_EQUAL(opscope_tensor_dims(largest), opscope_tensor_dims(a));
    for (int64_t i = 0; i < opscope_tensor_count(sum); i++) {
        CHECK_NEAR(at(sum, i), expected[i].sum, tolerance * sqrt((double)expected[i].count));
        CHECK(at(largest, i) == expected[i].largest);
        CHECK(at(smallest, i) == expected[i].smallest);
        CHECK(expected[i].count > 8 || near(at(product, i), expected[i].product, tolerance));
    }
    opscope_tensor_release(sum);
    opscope_tensor_release(largest);
    opscope_tensor_release(smallest);
    opscope_tensor_release(product);
}

static void check_all(opscope_tensor *a, double tolerance)
{
    for (uint32_t set = 1; set < 1u << opscope_tensor_dims(a); set++) {
        check_reductions(a, set, tolerance);
    }
}

static void reductions_equal_naive_loops_over_any_dimensions_and_strides(void)
{
    static const opscope_dtype dtypes[] = {OPSCOPE_FLOAT32, OPSCOPE_FLOAT64, OPSCOPE_INT32,
                                           OPSCOPE_INT64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        opscope_tensor *a = numbers(i, dtypes[i], SIZES(3, 7, 70));
        opscope_tensor *turned = DO("core::permute", T(a), L(2, 0, 1));
        opscope_tensor *backward = DO("core::slice", T(turned), I(0), N, N, I(-3));
        opscope_tensor *column = DO("core::select", T(a), I(2), I(4));
        opscope_tensor *spread = DO("core::expand", T(column), L(2, 3, 7));
        check_all(a, 1e-5);
        check_all(turned, 1e-5);
        check_all(backward, 1e-5);
        check_all(spread, 1e-5);
        opscope_tensor *all[] = {a, turned, backward, column, spread};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
            opscope_tensor_release(all[j]);
        }
    }
}

/* Shapes around the internal limits: tiles of columns, narrow columns, short rows, work split into
 * parts. */
static void reductions_equal_naive_loops_whatever_is_wide_or_narrow(void)
{
    static const int64_t shapes[][2] = {{2100, 3},  {3, 2100},  {1500, 64},
                                        {40, 1030}, {70000, 2}, {2, 70000}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        opscope_tensor *a = numbers(i, OPSCOPE_FLOAT32, 2, shapes[i]);
        opscope_tensor *turned = DO("core::t", T(a));
        opscope_tensor *stepped = DO("core::slice", T(a), I(1), N, N, I(2));
        for (uint32_t set = 1; set < 4; set++) {
            if (set == 3 || shapes[i][set == 1] <= 4096) {
                check_reductions(a, set, 1e-5);
                check_reductions(stepped, set, 1e-5);
            }
            if (set == 3 || shapes[i][set == 2] <= 4096) {
                check_reductions(turned, set, 1e-5);
            }
        }
        opscope_tensor_release(a);
        opscope_tensor_release(turned);
        opscope_tensor_release(stepped);
    }
}

static void sums_do_not_depend_on_the_number_of_threads(void)
{
    static const int64_t shapes[][2] = {{1, 1000003}, {700, 1500}, {300000, 5}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        opscope_tensor *a = numbers(i, OPSCOPE_FLOAT32, 2, shapes[i]);
        for (uint32_t set = 1; set < 4; set++) {
            CHECK(opscope_pool_set_threads(1) == OPSCOPE_OK);
            opscope_tensor *alone = reduce("core::sum", a, set, false);
            CHECK(opscope_pool_set_threads(4) == OPSCOPE_OK);
            opscope_tensor *together = reduce("core::sum", a, set, false);
            CHECK(memcmp(opscope_tensor_data(alone), opscope_tensor_data(together),
                         opscope_tensor_storage_bytes(alone)) == 0);
            opscope_tensor_release(alone);
            opscope_tensor_release(together);
        }
        opscope_tensor_release(a);
    }
}

/* Equal numbers are the worst case: each rounding errs the same way. */
static void a_long_float32_sum_of_equal_numbers_is_rounded_a_few_times_only(void)
{
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(1000, 1000));
    for (int64_t i = 0; i < 1000000; i++) {
        put(a, i, 0.1);
    }
    opscope_tensor *all = DO("core::sum", T(a)), *columns = DO("core::sum", T(a), L(0));
    CHECK(fabs(at(all, 0) / ((double)0.1f * 1e6) - 1) < 0x1p-22);
    CHECK(fabs(at(columns, 7) / ((double)0.1f * 1e3) - 1) < 0x1p-22);
    opscope_tensor_release(all);
    opscope_tensor_release(columns);
    opscope_tensor_release(a);
}

/* Rows are read in stretches of 512 elements, those from 8192 on in two halves. Sums of integers
 * are exact, so that an element that is left out or taken twice shows. */
static void each_element_of_a_long_row_is_added_once(void)
{
    for (int64_t length = 8192 - 513; length < 8192 + 2048; length += 171) {
        opscope_tensor *a = empty(OPSCOPE_INT32, SIZES(3, length));
        int64_t sums[3] = {0};
        for (int64_t i = 0; i < 3 * length; i++) {
            put(a, i, (double)(i % 46337 * (i % 46337)));
            sums[i / length] += i % 46337 * (i % 46337);
        }
        opscope_tensor *rows = DO("core::sum", T(a), L(1));
        for (int64_t i = 0; i < 3; i++) {
            CHECK_EQUAL(at(rows, i), (double)sums[i]);
        }
        opscope_tensor_release(rows);
        opscope_tensor_release(a);
    }
}

static void large_sums_are_exact_to_the_last_digits(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(1500, 1025));
    double sum = 0;
    for (int64_t i = 0; i < 1500 * 1025; i++) {
        sum += at(a, i) + 10;
        put(a, i, at(a, i) + 10);
    }
    opscope_tensor *all = DO("core::sum", T(a)), *mean = DO("core::mean", T(a));
    opscope_tensor *rows = DO("core::sum", T(a), L(0)), *total = DO("core::sum", T(rows));
    CHECK_NEAR(at(all, 0), sum, 1e-6);
    CHECK_NEAR(at(mean, 0), sum / (1500 * 1025), 1e-6);
    CHECK_NEAR(at(total, 0), sum, 1e-6);
    opscope_tensor_release(all);
    opscope_tensor_release(mean);
    opscope_tensor_release(rows);
    opscope_tensor_release(total);
    opscope_tensor_release(a);
}

static void reductions_of_nothing(void)
{
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(3, 0));
    opscope_tensor *sum = DO("core::sum", T(a), L(1)), *mean = DO("core::mean", T(a));
    CHECK_SIZES(sum, 3);
    CHECK(at(sum, 2) == 0 && isnan(at(mean, 0)));
    CHECK_HAS(FAIL("core::amax", T(a)), "no elements, so no largest one");
    CHECK_HAS(FAIL("core::sum", T(a), L(0, -2)), "dimension 0 occurs twice");
    opscope_tensor_release(sum);
    opscope_tensor_release(mean);
    opscope_tensor_release(a);
}

static void check_product(opscope_tensor *a, opscope_tensor *b)
{
    opscope_tensor *out = DO("core::mm", T(a), T(b));
    int64_t n = opscope_tensor_sizes(a)[0], k = opscope_tensor_sizes(a)[1],
            m = opscope_tensor_sizes(b)[1];
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < m; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++) {
                sum += at(a, i * k + l) * at(b, l * m + j);
            }
            CHECK_NEAR(at(out, i * m + j), sum, 1e-5);
        }
    }
    opscope_tensor_release(out);
}

static void products_equal_naive_loops_over_any_strides(void)
{
    for (int is_double = 0; is_double < 2; is_double++) {
        opscope_dtype dtype = is_double ? OPSCOPE_FLOAT64 : OPSCOPE_FLOAT32;
        opscope_tensor *a = numbers(1, dtype, SIZES(7, 9)), *b = numbers(2, dtype, SIZES(9, 14));
        opscope_tensor *even = DO("core::slice", T(b), I(1), N, N, I(-2));
        opscope_tensor *turned = DO("core::t", T(a)),
                       *line = DO("core::slice", T(b), I(0), I(0), I(7));
        check_product(a, b);
        check_product(a, even);
        check_product(turned, line);
        opscope_tensor *all[] = {a, b, even, turned, line};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            opscope_tensor_release(all[i]);
        }
    }
}

static void matmul_broadcasts_batches_and_takes_vectors(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT64, SIZES(2, 1, 3, 4));
    opscope_tensor *b = numbers(2, OPSCOPE_FLOAT64, SIZES(5, 4, 2));
    opscope_tensor *v = numbers(3, OPSCOPE_FLOAT64, SIZES(4));
    opscope_tensor *both = DO("core::matmul", T(a), T(b)), *vector = DO("core::matmul", T(a), T(v));
    opscope_tensor *left = DO("core::matmul", T(v), T(b)), *dot = DO("core::matmul", T(v), T(v));
    CHECK_SIZES(both, 2, 5, 3, 2);
    CHECK_SIZES(vector, 2, 1, 3);
    CHECK_SIZES(left, 5, 2);
    CHECK_EQUAL(opscope_tensor_dims(dot), 0);
    double sum = 0, row = 0;
    for (int k = 0; k < 4; k++) {
        sum += at(a, 12 + 2 * 4 + k) * at(b, 3 * 8 + k * 2 + 1);
        row += at(a, 12 + 4 + k) * at(v, k);
    }
    CHECK_NEAR(at(both, ((1 * 5 + 3) * 3 + 2) * 2 + 1), sum, 1e-14);
    CHECK_NEAR(at(vector, 4), row, 1e-14);
    CHECK_HAS(FAIL("core::matmul", T(v), T(a)), "do not multiply");
    CHECK_HAS(FAIL("core::mm", T(a), T(b)), "expected two tensors of 2 dimensions");
    opscope_tensor *all[] = {a, b, v, both, vector, left, dot};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        opscope_tensor_release(all[i]);
    }
}

int main(void)
{
    RUN(reductions_equal_naive_loops_over_any_dimensions_and_strides);
    RUN(reductions_equal_naive_loops_whatever_is_wide_or_narrow);
    RUN(sums_do_not_depend_on_the_number_of_threads);
    RUN(a_long_float32_sum_of_equal_numbers_is_rounded_a_few_times_only);
    RUN(each_element_of_a_long_row_is_added_once);
    RUN(large_sums_are_exact_to_the_last_digits);
    RUN(reductions_of_nothing);
    RUN(products_equal_naive_loops_over_any_strides);
    RUN(matmul_broadcasts_batches_and_takes_vectors);
    return 0;
}
