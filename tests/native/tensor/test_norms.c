/* Normalizations, dropout, losses and order over sizes that are split over threads, against naive
 * loops. */
#include "opscope/fork.h"
#include "tensors.h"

static void layer_norm_equals_naive_loops_with_any_threads(void)
{
    enum { ROWS = 300, WIDTH = 1531 };
    opscope_tensor *x = numbers(1, OPSCOPE_FLOAT32, SIZES(ROWS, WIDTH));
    opscope_tensor *w = numbers(2, OPSCOPE_FLOAT32, SIZES(WIDTH)),
                   *b = numbers(3, OPSCOPE_FLOAT32, SIZES(WIDTH));
    opscope_tensor_set_requires_grad(x, true);
    opscope_tensor_set_requires_grad(w, true);
    opscope_tensor *out = DO("core::layer_norm", T(x), L(WIDTH), T(w), T(b), R(1e-5));
    opscope_tensor *grad = numbers(4, OPSCOPE_FLOAT32, SIZES(ROWS, WIDTH));
    CHECK(opscope_backward(&out, &grad, 1, false, false) == OPSCOPE_OK);
    for (int64_t i = 0; i < ROWS; i += 37) {
        double mean = 0, spread = 0, shift = 0, slope = 0;
        for (int64_t j = 0; j < WIDTH; j++) {
            mean += at(x, i * WIDTH + j) / WIDTH;
        }
        for (int64_t j = 0; j < WIDTH; j++) {
            spread += pow(at(x, i * WIDTH + j) - mean, 2) / WIDTH;
        }
        double rstd = 1 / sqrt(spread + 1e-5);
        for (int64_t j = 0; j < WIDTH; j++) {
            double g = at(grad, i * WIDTH + j) * at(w, j), h = (at(x, i * WIDTH + j) - mean) * rstd;
            shift += g / WIDTH;
            slope += g * h / WIDTH;
            CHECK_NEAR(at(out, i * WIDTH + j), h * at(w, j) + at(b, j), 1e-5);
        }
        for (int64_t j = 0; j < WIDTH; j++) {
            double g = at(grad, i * WIDTH + j) * at(w, j), h = (at(x, i * WIDTH + j) - mean) * rstd;
            CHECK_NEAR(at(opscope_tensor_grad(x), i * WIDTH + j), rstd * (g - shift - h * slope),
                       1e-4);
        }
    }
    CHECK_SIZES(opscope_tensor_grad(w), WIDTH);
    opscope_tensor_release(x);
    opscope_tensor_release(w);
    opscope_tensor_release(b);
    opscope_tensor_release(out);
    opscope_tensor_release(grad);
}

static void batch_norm_equals_naive_loops(int64_t batch, int64_t channels, int64_t inner)
{
    opscope_tensor *x = numbers(1, OPSCOPE_FLOAT32, 3, (int64_t[]){batch, channels, inner});
    opscope_tensor *mean = numbers(2, OPSCOPE_FLOAT32, 1, &channels);
    opscope_tensor *var = numbers(3, OPSCOPE_FLOAT32, 1, &channels);
    double before = at(mean, 1), before_var = at(var, 1), count = (double)(batch * inner);
    opscope_tensor_set_requires_grad(x, true);
    opscope_tensor *out =
        DO("core::batch_norm", T(x), N, N, T(mean), T(var), B(true), R(0.25), R(1e-5));
    double sum = 0, spread = 0;
    for (int64_t i = 0; i < batch * inner; i++) {
        sum += at(x, (i / inner * channels + 1) * inner + i % inner);
    }
    for (int64_t i = 0; i < batch * inner; i++) {
        spread += pow(at(x, (i / inner * channels + 1) * inner + i % inner) - sum / count, 2);
    }
    for (int64_t i = 0; i < batch * inner; i++) {
        int64_t place = (i / inner * channels + 1) * inner + i % inner;
        CHECK_NEAR(at(out, place), (at(x, place) - sum / count) / sqrt(spread / count + 1e-5),
                   1e-4);
    }
    CHECK_NEAR(at(mean, 1), 0.75 * before + 0.25 * sum / count, 1e-5);
    CHECK_NEAR(at(var, 1), 0.75 * before_var + 0.25 * spread / (count - 1), 1e-4);
    CHECK_EQUAL(opscope_tensor_version(mean), 1);
    opscope_tensor *total = DO("core::sum", T(out));
    CHECK(opscope_backward(&total, NULL, 1, false, false) == OPSCOPE_OK);
    for (int64_t i = 0; i < opscope_tensor_count(x); i += 97) {
        CHECK_NEAR(at(opscope_tensor_grad(x), i), 0, 1e-4);
    }
    opscope_tensor_release(total);
    opscope_tensor_release(out);
    opscope_tensor_release(x);
    opscope_tensor_release(mean);
    opscope_tensor_release(var);
}

static void dropout_draws_the_same_with_any_threads(void)
{
    enum { COUNT = 400000 };
    opscope_tensor *ones = empty(OPSCOPE_FLOAT32, SIZES(COUNT)), *out[2];
    opscope_tensor_release(DO("core::fill_", T(ones), I(1)));
    for (int i = 0; i < 2; i++) {
        opscope_pool_set_threads(i + 1);
        opscope_tensor_seed(11);
        out[i] = DO("core::dropout", T(ones), R(0.25), B(true));
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        kept += at(out[0], i) != 0;
        CHECK_NEAR(at(out[0], i), at(out[1], i), 0);
    }
    CHECK_NEAR((double)kept / COUNT, 0.75, 0.01);
    opscope_tensor_release(ones);
    opscope_tensor_release(out[0]);
    opscope_tensor_release(out[1]);
}

static void sort_orders_many_rows_and_long_ones(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(3, 20011));
    put(a, 17, NAN);
    const opscope_operator *sort = opscope_operator_find("core::sort");
    opscope_tensor *both[OPSCOPE_OUTPUT_LIMIT];
    CHECK(opscope_call(sort, (opscope_argument[]){T(a), I(1), B(false)}, 3, both) == OPSCOPE_OK);
    for (int64_t i = 0; i < 3 * 20011; i++) {
        if (i % 20011 != 0 && i != 20010) {
            CHECK(at(both[0], i) >= at(both[0], i - 1));
        }
        int64_t from = i / 20011 * 20011 + (int64_t)at(both[1], i);
        CHECK_NEAR(at(both[0], i), at(a, from), 0);
    }
    CHECK(isnan(at(both[0], 20010)));
    opscope_tensor_release(both[0]);
    opscope_tensor_release(both[1]);
    opscope_tensor_release(a);
}

static void scattered_elements_are_those_that_gather_finds(void)
{
    opscope_tensor *zeros = empty(OPSCOPE_FLOAT64, SIZES(5, 6, 3));
    opscope_tensor_release(DO("core::fill_", T(zeros), I(0)));
    opscope_tensor *source = numbers(1, OPSCOPE_FLOAT64, SIZES(5, 2, 3));
    opscope_tensor *index = empty(OPSCOPE_INT64, SIZES(5, 2, 3));
    for (int64_t i = 0; i < 30; i++) {
        put(index, i, (double)(i % 3 + 3 * (i / 3 % 2)) - (i % 5 == 0 ? 6 : 0));
    }
    opscope_tensor *placed = DO("core::scatter_add", T(zeros), I(1), T(index), T(source));
    opscope_tensor *found = DO("core::gather", T(placed), I(-2), T(index));
    for (int64_t i = 0; i < 30; i++) {
        CHECK_NEAR(at(found, i), at(source, i), 0);
    }
    put(index, 7, 6);
    CHECK_HAS(FAIL("core::scatter", T(zeros), I(1), T(index), T(source)),
              "index 6 is out of range");
    opscope_tensor_release(zeros);
    opscope_tensor_release(source);
    opscope_tensor_release(index);
    opscope_tensor_release(placed);
    opscope_tensor_release(found);
}

static void cross_entropy_counts_what_is_not_ignored(void)
{
    opscope_tensor *scores = numbers(1, OPSCOPE_FLOAT64, SIZES(4, 3));
    opscope_tensor *target = empty(OPSCOPE_INT64, SIZES(4));
    opscope_tensor_set_requires_grad(scores, true);
    double loss = 0;
    for (int64_t i = 0; i < 4; i++) {
        put(target, i, i == 2 ? -100 : (double)(i % 3));
        double sum = 0;
        for (int64_t j = 0; j < 3; j++) {
            sum += exp(at(scores, i * 3 + j));
        }
        loss += i == 2 ? 0 : log(sum) - at(scores, i * 3 + i % 3);
    }
    opscope_tensor *mean = DO("core::cross_entropy", T(scores), T(target));
    CHECK_NEAR(at(mean, 0), loss / 3, 1e-12);
    CHECK(opscope_backward(&mean, NULL, 1, false, false) == OPSCOPE_OK);
    CHECK_NEAR(at(opscope_tensor_grad(scores), 7), 0, 0);
    opscope_tensor_release(mean);
    opscope_tensor_release(scores);
    opscope_tensor_release(target);
}

int main(void)
{
    for (int threads = 1; threads <= 2; threads++) {
        opscope_pool_set_threads(threads);
        layer_norm_equals_naive_loops_with_any_threads();
        batch_norm_equals_naive_loops(7, 40, 50);
        batch_norm_equals_naive_loops(301, 300, 1);
        sort_orders_many_rows_and_long_ones();
    }
    dropout_draws_the_same_with_any_threads();
    scattered_elements_are_those_that_gather_finds();
    cross_entropy_counts_what_is_not_ignored();
    return 0;
}
