/* Views: the same storage, other sizes and strides; what cannot be a view; factories. */
#include "tensors.h"

static bool shares(const opscope_tensor *a, const opscope_tensor *b)
{
    return opscope_tensor_storage_data(a) == opscope_tensor_storage_data(b);
}

static void views_share_storage_and_show_the_right_elements(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(2, 3, 4));
    opscope_tensor *turned = DO("core::transpose", T(a), I(0), I(-1));
    opscope_tensor *permuted = DO("core::permute", T(a), L(2, 0, 1));
    opscope_tensor *picked = DO("core::select", T(a), I(1), I(-1));
    opscope_tensor *backward = DO("core::slice", T(a), I(2), N, N, I(-2));
    opscope_tensor *flat = DO("core::view", T(a), L(-1));
    opscope_tensor *wide = DO("core::unsqueeze", T(picked), I(-1));
    opscope_tensor *narrow = DO("core::squeeze", T(wide));
    opscope_tensor *spread = DO("core::expand", T(wide), L(5, 2, 4, 3));
    CHECK_SIZES(turned, 4, 3, 2);
    CHECK_SIZES(permuted, 4, 2, 3);
    CHECK_SIZES(picked, 2, 4);
    CHECK_SIZES(backward, 2, 3, 2);
    CHECK_SIZES(flat, 24);
    CHECK_SIZES(wide, 2, 4, 1);
    CHECK_SIZES(narrow, 2, 4);
    CHECK_SIZES(spread, 5, 2, 4, 3);
    CHECK(shares(a, turned) && shares(a, permuted) && shares(a, picked) && shares(a, backward));
    CHECK(shares(a, flat) && shares(a, wide) && shares(a, narrow) && shares(a, spread));
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 4; k++) {
                double x = at(a, (i * 3 + j) * 4 + k);
                CHECK(at(turned, (k * 3 + j) * 2 + i) == x);
                CHECK(at(permuted, (k * 2 + i) * 3 + j) == x);
                CHECK(j != 2 || at(picked, i * 4 + k) == x);
                CHECK(k % 2 == 0 || at(backward, (i * 3 + j) * 2 + (3 - k) / 2) == x);
                CHECK(j != 2 || at(spread, (i * 4 + k) * 3 + 1) == x);
            }
        }
    }
    opscope_tensor *all[] = {a, turned, permuted, picked, backward, flat, wide, narrow, spread};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        opscope_tensor_release(all[i]);
    }
}

static void reshape_copies_only_where_it_must(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT64, SIZES(4, 6));
    opscope_tensor *rows = DO("core::slice", T(a), I(0), N, N, I(2));
    opscope_tensor *cut = DO("core::reshape", T(rows), L(2, 2, 3));
    CHECK(shares(a, cut));
    opscope_tensor *turned = DO("core::t", T(a));
    opscope_tensor *copied = DO("core::reshape", T(turned), L(24));
    CHECK(!shares(a, copied));
    CHECK(at(copied, 5) == at(turned, 5));
    CHECK_HAS(FAIL("core::view", T(turned), L(24)), "without a copy; use reshape");
    CHECK_HAS(FAIL("core::view", T(a), L(5, -1)), "do not hold the 24 elements");
    opscope_tensor *straight = DO("core::contiguous", T(turned));
    CHECK(opscope_tensor_is_contiguous(straight) && !shares(straight, a));
    opscope_tensor *all[] = {a, rows, cut, turned, copied, straight};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        opscope_tensor_release(all[i]);
    }
}

static void slices_are_clipped_as_in_python(void)
{
    static const struct {
        int64_t start, end, step, count, first; /* 99: absent */
    } cases[] = {{99, 99, 1, 5, 0}, {1, 99, 2, 2, 1},   {-2, 99, 1, 2, 3},       {-9, 9, 1, 5, 0},
                 {3, 1, 1, 0, 0},   {99, 99, -1, 5, 4}, {3, 0, -2, 2, 3},        {9, -9, -3, 2, 4},
                 {0, 99, -1, 1, 0}, {2, 3, 100, 1, 2},  {0, 99, INT64_MAX, 1, 0}};
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT64, SIZES(5));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        opscope_tensor *out =
            DO("core::slice", T(a), I(0), cases[i].start == 99 ? N : I(cases[i].start),
               cases[i].end == 99 ? N : I(cases[i].end), I(cases[i].step));
        CHECK_SIZES(out, cases[i].count);
        CHECK(cases[i].count == 0 || at(out, 0) == at(a, cases[i].first));
        opscope_tensor_release(out);
    }
    CHECK_HAS(FAIL("core::slice", T(a), I(0), N, N, I(0)), "the step must not be 0");
    CHECK_HAS(FAIL("core::select", T(a), I(0), I(5)), "index 5 is out of range");
    CHECK_EQUAL(opscope_tensor_error_kind(), OPSCOPE_ERROR_INDEX);
    CHECK_HAS(FAIL("core::select", T(a), I(1), I(0)),
              "dimension 1 is out of range; expected -1 to 0");
    opscope_tensor_release(a);
}

static void as_strided_stays_inside_the_storage(void)
{
    opscope_tensor *a = numbers(1, OPSCOPE_FLOAT32, SIZES(6)), *out = NULL;
    CHECK(opscope_tensor_as_strided(a, SIZES(2, 3), (int64_t[]){3, 1}, 0, &out) == OPSCOPE_OK);
    opscope_tensor_release(out);
    CHECK(opscope_tensor_as_strided(a, SIZES(2, 3), (int64_t[]){3, 1}, 1, &out) < 0);
    CHECK_HAS(opscope_tensor_error(), "reach beyond the storage of 6 elements");
    CHECK(opscope_tensor_as_strided(a, SIZES(3), (int64_t[]){-1}, 1, &out) < 0);
    CHECK(opscope_tensor_as_strided(a, SIZES(2), (int64_t[]){INT64_MAX}, 0, &out) < 0);
    CHECK(opscope_tensor_as_strided(a, SIZES(3), (int64_t[]){INT64_MAX}, 0, &out) < 0);
    CHECK(opscope_tensor_as_strided(a, SIZES(1), (int64_t[]){1}, INT64_MAX, &out) < 0);
    CHECK(opscope_tensor_empty(SIZES(1L << 40, 1L << 40), OPSCOPE_FLOAT32, NULL, &out) ==
          OPSCOPE_ERR_NO_MEMORY);
    CHECK(opscope_tensor_empty(SIZES(-1), OPSCOPE_FLOAT32, NULL, &out) == OPSCOPE_ERR_INVALID);
    opscope_tensor_release(a);
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static void memory_of_others_is_released_with_the_last_view(void)
{
    double memory[6] = {0, 1, 2, 3, 4, 5};
    int released = 0;
    opscope_tensor *a;
    CHECK(opscope_tensor_from_memory(memory + 5, SIZES(2, 3), (int64_t[]){-3, -1}, OPSCOPE_FLOAT64,
                                     true, count_release, &released, &a) == OPSCOPE_OK);
    CHECK(at(a, 0) == 5 && at(a, 5) == 0);
    CHECK_HAS(FAIL("core::fill_", T(a), I(1)), "memory is read-only");
    opscope_tensor *row = DO("core::select", T(a), I(0), I(1));
    opscope_tensor_release(a);
    CHECK_EQUAL(released, 0);
    CHECK(at(row, 0) == 2);
    opscope_tensor_release(row);
    CHECK_EQUAL(released, 1);
}

static void factories_make_what_they_say(void)
{
    opscope_tensor *eye = DO("core::eye", I(2), I(3)),
                   *steps = DO("core::arange", I(1), I(8), I(3));
    opscope_tensor *line = DO("core::linspace", I(0), I(1), I(5), I(OPSCOPE_FLOAT64));
    opscope_tensor *full = DO("core::full", L(2, 2), R(2.5)), *ones = DO("core::ones", L(3));
    CHECK(at(eye, 0) == 1 && at(eye, 1) == 0 && at(eye, 4) == 1);
    CHECK_EQUAL(opscope_tensor_dtype(steps), OPSCOPE_INT64);
    CHECK_SIZES(steps, 3);
    CHECK(at(steps, 2) == 7 && at(line, 3) == 0.75 && at(line, 4) == 1);
    CHECK(at(full, 3) == 2.5 && at(ones, 2) == 1);
    CHECK_HAS(FAIL("core::arange", I(0), I(1), I(0)), "the step must not be 0");
    opscope_tensor *all[] = {eye, steps, line, full, ones};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        opscope_tensor_release(all[i]);
    }
}

static void halves_round_to_nearest_even_and_come_back(void)
{
    static const double cases[] = {0, 1, -2.5, 65504, 1e-7, 6.1e-5, 1e30, 0.1, 2049, 2051};
    opscope_tensor *a = empty(OPSCOPE_FLOAT32, SIZES(10));
    for (int i = 0; i < 10; i++) {
        put(a, i, cases[i]);
    }
    opscope_tensor *half = DO("core::to", T(a), I(OPSCOPE_FLOAT16));
    opscope_tensor *back = DO("core::to", T(half), I(OPSCOPE_FLOAT32));
    for (int i = 0; i < 10; i++) {
        CHECK(cases[i] > 65504 ? isinf(at(back, i)) : near(at(back, i), at(a, i), 5e-4));
    }
    CHECK(at(back, 8) == 2048 && at(back, 9) == 2052);
    CHECK_HAS(FAIL("core::add", T(half), T(half)), "core::add: not defined for float16");
    opscope_tensor *brain = DO("core::to", T(a), I(OPSCOPE_BFLOAT16));
    opscope_tensor *again = DO("core::to", T(brain), I(OPSCOPE_FLOAT64));
    for (int i = 0; i < 10; i++) {
        CHECK(fabs(at(again, i) - at(a, i)) <= fabs(at(a, i)) / 256);
    }
    opscope_tensor *all[] = {a, half, back, brain, again};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        opscope_tensor_release(all[i]);
    }
}

static void allocators_count_what_they_give(void)
{
    opscope_allocator_stats before, during, after;
    const opscope_allocator *allocators[] = {opscope_allocator_cpu(), opscope_allocator_caching()};
    for (int i = 0; i < 2; i++) {
        opscope_tensor *a;
        opscope_allocator_read_stats(allocators[i], &before);
        CHECK(opscope_tensor_empty(SIZES(1000), OPSCOPE_FLOAT64, allocators[i], &a) == OPSCOPE_OK);
        CHECK((uintptr_t)opscope_tensor_data(a) % 64 == 0);
        opscope_allocator_read_stats(allocators[i], &during);
        opscope_tensor_release(a);
        opscope_allocator_read_stats(allocators[i], &after);
        CHECK_EQUAL(during.live_bytes, before.live_bytes + 8000);
        CHECK(during.peak_bytes >= during.live_bytes);
        CHECK_EQUAL(after.live_bytes, before.live_bytes);
        CHECK_EQUAL(after.allocation_count, before.allocation_count + 1);
    }
}

int main(void)
{
    RUN(views_share_storage_and_show_the_right_elements);
    RUN(reshape_copies_only_where_it_must);
    RUN(slices_are_clipped_as_in_python);
    RUN(as_strided_stays_inside_the_storage);
    RUN(memory_of_others_is_released_with_the_last_view);
    RUN(factories_make_what_they_say);
    RUN(halves_round_to_nearest_even_and_come_back);
    RUN(allocators_count_what_they_give);
    return 0;
}
