/* Elementwise operators: their numbers, broadcasting, strides, dtypes, in-place, and their errors.
 */
#include "tensors.h"

static double gelu(double x)
{
    return 0.5 * x * (1 + erf(x / sqrt(2)));
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double relu(double x)
{
    return x < 0 ? 0 : x;
}

static double negative(double x)
{
    return -x;
}

static const struct {
    const char *name;
    double (*reference)(double);
} unaries[] = {{"core::exp", exp},   {"core::log", log},         {"core::sin", sin},
               {"core::cos", cos},   {"core::tanh", tanh},       {"core::sqrt", sqrt},
               {"core::gelu", gelu}, {"core::sigmoid", sigmoid}, {"core::rsqrt", rsqrt},
               {"core::relu", relu}, {"core::abs", fabs},        {"core::neg", negative}};

static void unary_operators_equal_the_c_library(void)
{
    for (size_t i = 0; i < sizeof unaries / sizeof *unaries; i++) {
        for (int is_double = 0; is_double < 2; is_double++) {
            opscope_tensor *a =
                numbers(i, is_double ? OPSCOPE_FLOAT64 : OPSCOPE_FLOAT32, SIZES(7, 37));
            put(a, 0, INFINITY);
            put(a, 1, -INFINITY);
            put(a, 2, NAN);
            put(a, 3, 0);
            opscope_tensor *out = DO(unaries[i].name, T(a));
            for (int64_t j = 0; j < 7 * 37; j++) {
                CHECK_NEAR(at(out, j), unaries[i].reference(at(a, j)), is_double ? 1e-14 : 1e-6);
            }
            opscope_tensor_release(out);
            opscope_tensor_release(a);
        }
    }
}

/* Views of one 6 x 5 x 4 tensor with typical strides, and broadcast ones. */
enum { VIEW_COUNT = 9 };

static opscope_tensor *view(opscope_tensor *base, int kind)
{
    static const struct {
        int dims;
        int64_t sizes[3], strides[3], offset;
    } kinds[] = {
        {3, {3, 5, 4}, {20, 4, 1}, 0},    /* unchanged */
        {3, {3, 5, 4}, {40, 4, 1}, 20},   /* every second */
        {3, {3, 5, 4}, {20, -4, -1}, 19}, /* backward */
        {3, {3, 5, 4}, {1, 20, 3}, 2},    /* permuted */
        {3, {3, 5, 4}, {0, 0, 0}, 7},     /* one element */
        {2, {5, 4}, {1, 5}, 1},           /* transposed, one dimension short */
        {3, {1, 5, 1}, {9, 2, 9}, 0},     {1, {4}, {-3}, 12}, {0, {0}, {0}, 5},
    };
    CHECK_EQUAL(sizeof kinds / sizeof *kinds, VIEW_COUNT);
    opscope_tensor *out = NULL;
    CHECK(opscope_tensor_as_strided(base, kinds[kind].dims, kinds[kind].sizes, kinds[kind].strides,
                                    kinds[kind].offset, &out) == OPSCOPE_OK);
    return out;
}

/* Element `index` of `tensor` broadcast to 3 x 5 x 4. */
static double broadcast_at(const opscope_tensor *tensor, int64_t index)
{
    int64_t all[] = {index / 20, index / 4 % 5, index % 4};
    int64_t flat = 0;
    int dims = opscope_tensor_dims(tensor);
    for (int i = 0; i < dims; i++) {
        int64_t size = opscope_tensor_sizes(tensor)[i];
        flat = flat * size + (size == 1 ? 0 : all[3 - dims + i]);
    }
    return at(tensor, flat);
}

static void binary_operators_walk_any_strides(void)
{
    opscope_tensor *base_a = numbers(1, OPSCOPE_FLOAT64, SIZES(6, 5, 4));
    opscope_tensor *base_b = numbers(2, OPSCOPE_FLOAT64, SIZES(6, 5, 4));
    for (int i = 0; i < VIEW_COUNT; i++) {
        for (int j = 0; j < 4; j++) {
            opscope_tensor *a = view(base_a, i), *b = view(base_b, j);
            opscope_tensor *sum = DO("core::add", T(a), T(b), R(0.5));
            opscope_tensor *quotient = DO("core::div", T(b), T(a));
            CHECK_SIZES(sum, 3, 5, 4);
            for (int64_t k = 0; k < 60; k++) {
                double x = broadcast_at(a, k), y = broadcast_at(b, k);
                CHECK_NEAR(at(sum, k), x + 0.5 * y, 1e-15);
                CHECK_NEAR(at(quotient, k), y / x, 1e-15);
            }
            opscope_tensor_release(sum);
            opscope_tensor_release(quotient);
            opscope_tensor_release(a);
            opscope_tensor_release(b);
        }
    }
    opscope_tensor_release(base_a);
    opscope_tensor_release(base_b);
}

static void large_tensors_are_split_over_threads_with_the_same_result(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(700, 601));
    opscope_tensor *b = numbers(2, OPSCOPE_FLOAT32, SIZES(601, 700)), *turned;
    CHECK(opscope_tensor_as_strided(b, SIZES(700, 601), (int64_t[]){1, 700}, 0, &turned) == 0);
    opscope_tensor *sum = DO("core::add", T(a), T(turned));
    for (int64_t i = 0; i < 700 * 601; i++) {
        CHECK(at(sum, i) == (double)((float)at(a, i) + (float)at(turned, i)));
    }
    opscope_tensor_release(sum);
    opscope_tensor_release(turned);
    opscope_tensor_release(a);
    opscope_tensor_release(b);
}

/* Sizes that tiles do not divide; strides that cross in every pair of dimensions, stepped and
 * reversed. */
/* Operands and result are larger than what kernels/stream.c takes for the cache. */
static void results_larger_than_the_cache_are_the_same(void)
{
    enum { LARGE = 8500013 };
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(LARGE + 3));
    float *x = opscope_tensor_data(a);
    for (int i = 0; i < LARGE + 3; i++) {
        x[i] = (float)(i % 1021) * 0.37f;
    }
    opscope_tensor *from = DO("core::slice", T(a), I(0), I(3), I(LARGE + 3), I(1));
    opscope_tensor *to = DO("core::slice", T(a), I(0), I(0), I(LARGE), I(1));
    opscope_tensor *sum = DO("core::add", T(from), T(to));
    const float *is = opscope_tensor_data(sum);
    for (int i = 0; i < LARGE; i++) {
        CHECK(is[i] == x[i + 3] + x[i]);
    }
    opscope_tensor_release(DO("core::add_", T(sum), T(to)));
    for (int i = 0; i < LARGE; i++) {
        CHECK(is[i] == x[i + 3] + x[i] + x[i]);
    }
    opscope_tensor_release(sum);
    opscope_tensor_release(to);
    opscope_tensor_release(from);
    opscope_tensor_release(a);
}

static void operands_of_different_orders_are_walked_in_tiles(void)
{
    static const opscope_dtype dtypes[] = {OPSCOPE_FLOAT32, OPSCOPE_FLOAT64, OPSCOPE_INT64,
                                           OPSCOPE_BOOL, OPSCOPE_FLOAT16};
    static const struct {
        int64_t sizes[3], strides[3], offset;
    } views[] = {
        {{5, 130, 91}, {130, 1, 650}, 0}, /* orders: whole, two outer, two inner */
        {{5, 130, 91}, {1, 5, 650}, 0},
        {{5, 130, 91}, {1, 455, 5}, 0},
        {{5, 130, 91}, {11830, 1, 130}, 0},
        {{130, 3, 91}, {2, 1, 400}, 7},      /* overlapping itself */
        {{5, 130, 91}, {130, -1, 650}, 129}, /* reversed, and with steps */
        {{5, 65, 91}, {130, 2, 650}, 1},
        {{1, 300, 200}, {9, 1, 299}, 0},
    };
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        for (size_t j = 0; j < sizeof dtypes / sizeof *dtypes; j++) {
            const int64_t *sizes = views[i].sizes;
            opscope_tensor *drawn = numbers(i, OPSCOPE_FLOAT32, SIZES(60000)), *turned;
            opscope_tensor *base = dtypes[j] == OPSCOPE_BOOL
                                       ? DO("core::gt", T(drawn), R(0))
                                       : DO("core::to", T(drawn), I(dtypes[j]));
            CHECK(opscope_tensor_as_strided(base, 3, sizes, views[i].strides, views[i].offset,
                                            &turned) == 0);
            opscope_tensor *copy = DO("core::contiguous", T(turned));
            opscope_tensor *other = numbers(9, OPSCOPE_FLOAT64, 3, sizes);
            opscope_tensor *is_above = DO("core::gt", T(other), R(0));
            /* float16 is only copied. */
            opscope_tensor *taken = dtypes[j] == OPSCOPE_FLOAT16 ? other : turned;
            opscope_tensor *chosen = DO("core::where", T(is_above), T(taken), T(other));
            opscope_tensor *sum = DO("core::add", T(other), T(taken));
            for (int64_t k = 0; k < sizes[0] * sizes[1] * sizes[2]; k++) {
                CHECK(at(copy, k) == at(turned, k));
                CHECK(at(chosen, k) == (at(is_above, k) != 0 ? at(taken, k) : at(other, k)));
                CHECK(at(sum, k) == at(other, k) + at(taken, k));
            }
            opscope_tensor *all[] = {drawn, base, turned, copy, other, is_above, chosen, sum};
            for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
                opscope_tensor_release(all[k]);
            }
        }
    }
}

static opscope_dtype dtype_of_sum(opscope_dtype a, bool a_has_dims, opscope_argument b)
{
    opscope_tensor *x = a_has_dims ? numbers(1, a, SIZES(3)) : numbers(1, a, 0, NULL);
    opscope_tensor *sum = DO("core::add", T(x), b);
    opscope_dtype dtype = opscope_tensor_dtype(sum);
    opscope_tensor_release(sum);
    opscope_tensor_release(x);
    return dtype;
}

static void dtypes_promote_as_in_pytorch(void)
{
    opscope_tensor *f64 = numbers(1, OPSCOPE_FLOAT64, 0, NULL);
    opscope_tensor *i64 = numbers(1, OPSCOPE_INT64, SIZES(3));
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_FLOAT32, true, T(f64)), OPSCOPE_FLOAT32);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_INT32, true, T(f64)), OPSCOPE_FLOAT64);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_FLOAT32, true, T(i64)), OPSCOPE_FLOAT32);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_FLOAT32, false, T(i64)), OPSCOPE_FLOAT32);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_INT32, true, I(3)), OPSCOPE_INT32);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_INT32, true, R(3)), OPSCOPE_FLOAT32);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_FLOAT64, true, R(3)), OPSCOPE_FLOAT64);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_BOOL, true, I(3)), OPSCOPE_INT64);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_BOOL, true, B(1)), OPSCOPE_BOOL);
    CHECK_EQUAL(dtype_of_sum(OPSCOPE_UINT8, true, T(i64)), OPSCOPE_INT64);
    opscope_tensor_release(f64);
    opscope_tensor_release(i64);
}

static void in_place_writes_the_same_storage_and_counts(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(4, 3));
    opscope_tensor *b = numbers(2, OPSCOPE_FLOAT32, SIZES(3));
    double before = at(a, 4);
    uint64_t version = opscope_tensor_version(a);
    opscope_tensor *out = DO("core::mul_", T(a), T(b));
    CHECK(out == a);
    CHECK_EQUAL(opscope_tensor_version(a), version + 1);
    CHECK_NEAR(at(a, 4), before * at(b, 1), 1e-6);
    opscope_tensor_release(out);

    /* Reads in another order than it writes: a += a reversed must not read elements that it has
     * written. */
    opscope_tensor *line = numbers(3, OPSCOPE_FLOAT64, SIZES(9)), *backward;
    CHECK(opscope_tensor_as_strided(line, SIZES(9), (int64_t[]){-1}, 8, &backward) == 0);
    double first = at(line, 0), last = at(line, 8);
    opscope_tensor_release(DO("core::add_", T(line), T(backward)));
    CHECK_NEAR(at(line, 0), first + last, 1e-15);
    CHECK_NEAR(at(line, 8), first + last, 1e-15);
    opscope_tensor_release(backward);
    opscope_tensor_release(line);
    opscope_tensor_release(a);
    opscope_tensor_release(b);
}

static void errors_say_what_would_have_been_right(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(3, 4));
    opscope_tensor *b = numbers(2, OPSCOPE_FLOAT32, SIZES(3));
    opscope_tensor *i = numbers(3, OPSCOPE_INT64, SIZES(4));
    opscope_tensor *expanded;
    CHECK(opscope_tensor_as_strided(b, SIZES(3, 3), (int64_t[]){0, 1}, 0, &expanded) == 0);
    CHECK_HAS(FAIL("core::add", T(a), T(b)), "core::add: sizes [3, 4] and [3] do not broadcast");
    CHECK_HAS(FAIL("core::add_", T(i), T(a)), "core::add_: the result has sizes [3, 4]");
    CHECK_HAS(FAIL("core::add_", T(i), R(0.5)), "a float32 result cannot be written into a int64");
    CHECK_HAS(FAIL("core::add_", T(expanded), I(1)), "share one address in memory");
    CHECK_HAS(FAIL("core::add", T(a)), "argument \"other\" is missing");
    CHECK_HAS(FAIL("core::add", T(a), N), "argument \"other\" is of the wrong kind");
    CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_TYPE);
    CHECK_HAS(FAIL("core::exp", T(a), T(a)), "takes at most 1 arguments, not 2");
    CHECK_HAS(FAIL("core::add", I(1), I(2)), "one argument must be a tensor");
    CHECK_HAS(FAIL("core::add", T(i), I(1), R(0.5)), "the factor 0.5 is a float");
    opscope_tensor_release(expanded);
    opscope_tensor_release(a);
    opscope_tensor_release(b);
    opscope_tensor_release(i);
}

static void integers_divide_downward_and_never_trap(void)
{
    static const int64_t cases[][4] = {{7, 2, 3, 1},    {-7, 2, -4, 1},
                                       {7, -2, -4, -1}, {-7, -2, 3, -1},
                                       {7, 0, 0, 0},    {INT64_MIN, -1, INT64_MIN, 0}};
    opscope_tensor *a = empty(OPSCOPE_INT64, SIZES(6)), *b = empty(OPSCOPE_INT64, SIZES(6));
    for (int i = 0; i < 6; i++) {
        ((int64_t *)opscope_tensor_data(a))[i] = cases[i][0];
        ((int64_t *)opscope_tensor_data(b))[i] = cases[i][1];
    }
    opscope_tensor *whole = DO("core::floor_divide", T(a), T(b));
    opscope_tensor *rest = DO("core::remainder", T(a), T(b));
    for (int i = 0; i < 6; i++) {
        CHECK_EQUAL(((int64_t *)opscope_tensor_data(whole))[i], cases[i][2]);
        CHECK_EQUAL(((int64_t *)opscope_tensor_data(rest))[i], cases[i][3]);
    }
    opscope_tensor_release(a);
    opscope_tensor_release(b);
    opscope_tensor_release(whole);
    opscope_tensor_release(rest);
}

static void zero_size_tensors_compute_nothing(void)
{
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(3, 0, 4)),
                   *b = empty(OPSCOPE_FLOAT32, SIZES(1, 4));
    put(b, 0, 1);
    opscope_tensor *sum = DO("core::add", T(a), T(b));
    CHECK_SIZES(sum, 3, 0, 4);
    CHECK_EQUAL(opscope_tensor_count(sum), 0);
    opscope_tensor_release(sum);
    opscope_tensor_release(a);
    opscope_tensor_release(b);
}

int main(void)
{
    RUN(unary_operators_equal_the_c_library);
    RUN(binary_operators_walk_any_strides);
    RUN(large_tensors_are_split_over_threads_with_the_same_result);
    RUN(results_larger_than_the_cache_are_the_same);
    RUN(operands_of_different_orders_are_walked_in_tiles);
    RUN(dtypes_promote_as_in_pytorch);
    RUN(in_place_writes_the_same_storage_and_counts);
    RUN(errors_say_what_would_have_been_right);
    RUN(integers_divide_downward_and_never_trap);
    RUN(zero_size_tensors_compute_nothing);
    return 0;
}
