/* Operators along one dimension, indices and random numbers against naive loops. */
#include "opscope/fork.h"
#include "tensors.h"

static void softmax_sums_to_one_along_any_dimension(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(3, 5, 7));
    put(a, 3, 800);
    put(a, 4, -800);
    for (int64_t dim = 0; dim < 3; dim++) {
        opscope_tensor *out = DO("core::softmax", T(a), I(dim));
        opscope_tensor *logs = DO("core::log_softmax", T(a), I(dim - 3));
        opscope_tensor *sums = DO("core::sum", T(out), L(dim));
        for (int64_t i = 0; i < opscope_tensor_count(sums); i++) {
            CHECK_NEAR(at(sums, i), 1, 1e-6);
        }
        for (int64_t i = 0; i < 105; i++) {
            CHECK_NEAR(exp(at(logs, i)), at(out, i), 1e-6);
        }
        opscope_tensor_release(out);
        opscope_tensor_release(logs);
        opscope_tensor_release(sums);
    }
    opscope_tensor_release(a);
}

/* A row of several stretches: the largest element in the second, only -inf in the third. */
static void softmax_of_wide_rows_equals_naive_loops_with_any_threads(void)
{
    enum { WIDTH = 200003 };
    opscope_tensor *a = numbers(2, OPSCOPE_FLOAT32, SIZES(2, WIDTH));
    put(a, 1500, 30);
    for (int64_t i = 2000; i < 4000; i++) {
        put(a, i, (double)-INFINITY);
    }
    put(a, WIDTH + 3, NAN);
    double sum = 0;
    for (int64_t i = 0; i < WIDTH; i++) {
        sum += exp(at(a, i) - 30);
    }
    opscope_tensor *first[2] = {NULL, NULL};
    for (int threads = 1; threads < 4; threads += 2) {
        CHECK(opscope_pool_set_threads(threads) == OPSCOPE_OK);
        opscope_tensor *out[2] = {DO("core::softmax", T(a), I(1)),
                                  DO("core::log_softmax", T(a), I(1))};
        for (int64_t i = 0; i < WIDTH; i++) {
            CHECK(fabs(at(out[0], i) - exp(at(a, i) - 30) / sum) <= 2e-6 * at(out[0], i) + 1e-30);
            CHECK_NEAR(at(out[1], i), at(a, i) - 30 - log(sum), 1e-6);
            CHECK(isnan(at(out[0], WIDTH + i)) && isnan(at(out[1], WIDTH + i)));
        }
        for (int i = 0; i < 2; i++) {
            CHECK(first[i] == NULL ||
                  memcmp(opscope_tensor_data(first[i]), opscope_tensor_data(out[i]),
                         WIDTH * sizeof(float)) == 0);
            opscope_tensor_release(first[i]);
            first[i] = out[i];
        }
    }
    opscope_tensor_release(first[0]);
    opscope_tensor_release(first[1]);
    opscope_tensor_release(a);
}

static void argmax_finds_the_first_of_the_largest(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT64, SIZES(4, 6));
    put(a, 7, 9);
    put(a, 9, 9);
    put(a, 14, NAN);
    opscope_tensor *rows = DO("core::argmax", T(a), I(1)), *all = DO("core::argmin", T(a));
    opscope_tensor *columns = DO("core::argmax", T(a), I(0), B(true));
    CHECK_SIZES(rows, 4);
    CHECK_SIZES(columns, 1, 6);
    CHECK(at(rows, 1) == 1 && at(rows, 2) == 2 && at(columns, 1) == 1 && at(columns, 2) == 2);
    CHECK(at(all, 0) == 14);
    opscope_tensor *nothing = empty(OPSCOPE_FLOAT32, SIZES(0));
    CHECK_HAS(FAIL("core::argmax", T(nothing)), "at least one number expected");
    opscope_tensor *made[] = {a, rows, all, columns, nothing};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        opscope_tensor_release(made[i]);
    }
}

static void sums_so_far_and_variance(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_INT32, SIZES(3, 4)),
                   *f = numbers(1, OPSCOPE_FLOAT32, SIZES(3, 4));
    opscope_tensor *sums = DO("core::cumsum", T(a), I(0)), *spread = DO("core::var", T(f), L(0));
    CHECK_EQUAL(opscope_tensor_dtype(sums), OPSCOPE_INT64);
    CHECK(at(sums, 9) == at(a, 1) + at(a, 5) + at(a, 9));
    double mean = (at(f, 1) + at(f, 5) + at(f, 9)) / 3, square = 0;
    for (int i = 0; i < 3; i++) {
        square += pow(at(f, 1 + 4 * i) - mean, 2);
    }
    CHECK_NEAR(at(spread, 1), square / 2, 1e-6);
    opscope_tensor_release(a);
    opscope_tensor_release(f);
    opscope_tensor_release(sums);
    opscope_tensor_release(spread);
}

static void indices_pick_rows_and_are_checked(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(4, 3)),
                   *index = empty(OPSCOPE_INT32, SIZES(2));
    put(index, 0, -1);
    put(index, 1, 1);
    opscope_tensor *rows = DO("core::index_select", T(a), I(0), T(index));
    opscope_tensor *columns = DO("core::index_select", T(a), I(1), T(index));
    CHECK_SIZES(rows, 2, 3);
    CHECK_SIZES(columns, 4, 2);
    CHECK(at(rows, 1) == at(a, 10) && at(rows, 5) == at(a, 5) && at(columns, 4) == at(a, 8));
    put(index, 1, 4);
    CHECK_HAS(FAIL("core::index_select", T(a), I(0), T(index)), "index 4 is out of range");
    CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_INDEX);
    CHECK_HAS(FAIL("core::embedding", T(a), T(a)), "indices are integers, not float32");
    opscope_tensor_release(a);
    opscope_tensor_release(index);
    opscope_tensor_release(rows);
    opscope_tensor_release(columns);
}

static void random_numbers_repeat_after_a_seed_and_have_their_moments(void)
{
    opscope_tensor_seed(7);
    opscope_tensor *first = DO("core::randn", L(100000)), *second = DO("core::randn", L(100000));
    opscope_tensor_seed(7);
    opscope_tensor *again = DO("core::randn", L(100000)), *even = DO("core::rand", L(100000));
    double sum = 0, squares = 0, evens = 0;
    for (int64_t i = 0; i < 100000; i++) {
        CHECK(at(first, i) == at(again, i) && at(first, i) != at(second, i));
        CHECK(at(even, i) >= 0 && at(even, i) < 1);
        sum += at(first, i);
        squares += at(first, i) * at(first, i);
        evens += at(even, i);
    }
    CHECK(fabs(sum / 1e5) < 0.02 && fabs(squares / 1e5 - 1) < 0.03 &&
          fabs(evens / 1e5 - 0.5) < 0.01);
    opscope_tensor_release(first);
    opscope_tensor_release(second);
    opscope_tensor_release(again);
    opscope_tensor_release(even);
}

int main(void)
{
    RUN(softmax_sums_to_one_along_any_dimension);
    RUN(softmax_of_wide_rows_equals_naive_loops_with_any_threads);
    RUN(argmax_finds_the_first_of_the_largest);
    RUN(sums_so_far_and_variance);
    RUN(indices_pick_rows_and_are_checked);
    RUN(random_numbers_repeat_after_a_seed_and_have_their_moments);
    return 0;
}
