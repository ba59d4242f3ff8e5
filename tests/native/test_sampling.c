/* tests/native/test_sampling.c -- sampling draws what it promises: exact in distribution, and
 * independent for each callback and thread. Fixed seeds; five standard errors. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "ranges.h"
#include "record/random.h"

static void countdowns_have_the_geometric_distribution(void)
{
    enum { DRAWS = 200000 };
    static const double probs[] = {0.9, 0.5, 0.1, 0.01, 1e-4};
    for (size_t p = 0; p < sizeof probs / sizeof probs[0]; p++) {
        const double prob = probs[p];
        opscope__random random;
        opscope__random_seed(&random, 7 + p, 1);
        double sum = 0;
        uint64_t first[4] = {0};
        for (int i = 0; i < DRAWS; i++) {
            uint64_t countdown = opscope__random_countdown(&random, prob);
            CHECK(countdown >= 1);
            sum += (double)countdown;
            if (countdown <= 4) {
                first[countdown - 1]++;
            }
        }
        double mean = 1 / prob, deviation = sqrt((1 - prob) / (prob * prob));
        CHECK(fabs(sum / DRAWS - mean) < 5 * deviation / sqrt(DRAWS));
        for (int k = 0; k < 4; k++) {
            double share = prob * pow(1 - prob, k);
            double error = sqrt(share * (1 - share) / DRAWS);
            CHECK(fabs((double)first[k] / DRAWS - share) < 5 * error + 1.0 / DRAWS);
        }
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void tiny_probabilities_are_exact_too(void)
{
    enum { DRAWS = 20000 };
    static const double probs[] = {1e-9, 1e-12, 3e-13};
    static double shares[DRAWS];
    for (size_t p = 0; p < sizeof probs / sizeof probs[0]; p++) {
        opscope__random random;
        opscope__random_seed(&random, 99, p);
        for (int i = 0; i < DRAWS; i++) {
            double countdown = (double)opscope__random_countdown(&random, probs[p]);
            shares[i] = -expm1(countdown * log1p(-probs[p])); /* uniform, if the code is correct */
        }
        qsort(shares, DRAWS, sizeof shares[0], compare);
        double largest = 0; /* Kolmogorov's distance; 2.6 / sqrt(n) is beyond five sigmas */
        for (int i = 0; i < DRAWS; i++) {
            largest = fmax(largest, fabs(shares[i] - (i + 0.5) / DRAWS));
        }
        CHECK(largest < 2.6 / sqrt(DRAWS));
    }
}

static void probabilities_at_the_ends_of_a_double_stay_in_range(void)
{
    static const double probs[] = {5e-324, 1e-300, 1e-19, 0.5, 1 - 0x1p-53};
    for (size_t p = 0; p < sizeof probs / sizeof probs[0]; p++) {
        opscope__random random;
        opscope__random_seed(&random, 3, p);
        for (int i = 0; i < 1000; i++) {
            uint64_t countdown = opscope__random_countdown(&random, probs[p]);
            CHECK(countdown >= 1 && countdown <= (uint64_t)1 << 63);
        }
    }
}

static void one_always_fires_and_zero_never(void)
{
    struct calls always = {0}, never = {0};
    add_global(counting(&always));
    opscope_callback callback = counting(&never);
    callback.sampling_prob = 0.0;
    add_global(callback);
    run_ranges(op_named("a"), 100000);
    CHECK_EQUAL(always.starts, 100000);
    CHECK_EQUAL(never.starts, 0);
    opscope_clear_callbacks();
    add_global(callback);
    run_ranges(op_named("a"), 100000);
    CHECK_EQUAL(never.starts, 0);
    opscope_clear_callbacks();
}

static void callbacks_fire_independently_at_their_own_rates(void)
{
    enum { RANGES = 400000 };
    static const double probs[] = {0.3, 0.01, 0.3};
    struct calls calls[4] = {{0}};
    opscope_seed(11);
    for (int i = 0; i < 3; i++) {
        opscope_callback callback = counting(&calls[i]);
        callback.sampling_prob = probs[i];
        add_global(callback);
    }
    uint64_t both = 0;
    const opscope_op *op = op_named("a");
    for (int i = 0; i < RANGES; i++) {
        uint64_t before[2] = {calls[0].starts, calls[2].starts};
        run_ranges(op, 1);
        both += calls[0].starts != before[0] && calls[2].starts != before[1];
    }
    for (int i = 0; i < 3; i++) {
        double error = sqrt(RANGES * probs[i] * (1 - probs[i]));
        CHECK(fabs((double)calls[i].starts - RANGES * probs[i]) < 5 * error);
        CHECK_EQUAL(calls[i].ends, calls[i].starts);
    }
    CHECK(fabs((double)both - RANGES * 0.09) < 5 * sqrt(RANGES * 0.09 * 0.91));
    opscope_clear_callbacks();
    opscope_seed(0);
}

static void scopes_count_down_by_themselves(void)
{
    enum { RANGES = 300000 };
    struct calls calls = {0};
    opscope_seed(12);
    opscope_callback callback = counting(&calls);
    callback.sampling_prob = 0.01;
    callback.scopes = 1u << OPSCOPE_USER_SCOPE;
    add_global(callback);
    const opscope_op *user = op_of("user", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER);
    for (int i = 0; i < RANGES; i++) {
        run_ranges(op_named("a"), 3); /* not wanted: does not change the other's countdown */
        run_ranges(user, 1);
    }
    CHECK(fabs((double)calls.starts - RANGES * 0.01) < 5 * sqrt(RANGES * 0.01 * 0.99));
    opscope_clear_callbacks();
    opscope_seed(0);
}

static void coming_and_going_of_others_does_not_bias_a_rate(void)
{
    enum { RANGES = 200000 };
    struct calls sampled = {0}, other = {0};
    opscope_seed(13);
    opscope_callback callback = counting(&sampled);
    callback.sampling_prob = 0.02;
    add_global(callback);
    opscope_handle handle = add_global(counting(&other));
    for (int i = 0; i < RANGES; i++) {
        if (i % 7 == 0) {
            (void)(i % 2 == 0 ? opscope_disable_callback : opscope_enable_callback)(handle);
        }
        run_ranges(op_named("a"), 1);
    }
    CHECK(fabs((double)sampled.starts - RANGES * 0.02) < 5 * sqrt(RANGES * 0.02 * 0.98));
    opscope_clear_callbacks();
    opscope_seed(0);
}

/* ---- sequences ------------------------------------------------------------------------------ */

enum { BITS = 4096, THREADS = 16 };

/* A bit for each of a thread's first ranges: it fired. */
struct pattern {
    uint8_t fired[BITS / 8];
    int at;
};
static _Thread_local struct pattern *now;

static int mark(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)user;
    (void)context;
    now->fired[now->at / 8] |= (uint8_t)(1u << now->at % 8);
    return OPSCOPE_OK;
}

static void draw_pattern(struct pattern *pattern)
{
    memset(pattern, 0, sizeof *pattern);
    now = pattern;
    for (pattern->at = 0; pattern->at < BITS; pattern->at++) {
        run_ranges(op_named("a"), 1);
    }
}

static void *draw_in_thread(void *pattern)
{
    draw_pattern(pattern);
    return NULL;
}

static struct pattern patterns[THREADS + 1];

static void draw_in_threads(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, draw_in_thread, &patterns[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

static void two_threads_never_draw_the_same_sequence(void)
{
    add_global((opscope_callback){.start = mark, .sampling_prob = 0.5});
    for (uint64_t seed = 0; seed < 3; seed++) {
        opscope_seed(seed);
        draw_pattern(&patterns[THREADS]);
        draw_in_threads();
        for (int a = 0; a <= THREADS; a++) {
            for (int b = 0; b < a; b++) {
                CHECK(memcmp(&patterns[a], &patterns[b], sizeof patterns[a]) != 0);
            }
        }
    }
    opscope_clear_callbacks();
    opscope_seed(0);
}

static void a_seed_makes_a_threads_sequence_repeatable(void)
{
    struct pattern first, again, other;
    opscope_handle handle = add_global((opscope_callback){.start = mark, .sampling_prob = 0.5});
    opscope_seed(42);
    draw_pattern(&first);
    opscope_seed(42);
    draw_pattern(&again);
    opscope_seed(43);
    draw_pattern(&other);
    CHECK(memcmp(&first, &again, sizeof first) == 0);
    CHECK(memcmp(&first, &other, sizeof first) != 0);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    opscope_seed(0);
}

static void a_forked_child_draws_another_sequence(void)
{
    struct pattern parents, childs;
    int ends[2];
    add_global((opscope_callback){.start = mark, .sampling_prob = 0.5});
    draw_pattern(&parents);
    CHECK_EQUAL(pipe(ends), 0);
    pid_t child = fork();
    (void)opscope_recording_set(
        false); /* both rebuild their snapshots and draw their first countdowns */
    (void)opscope_recording_set(true);
    draw_pattern(child == 0 ? &childs : &parents);
    if (child == 0) {
        CHECK_EQUAL(write(ends[1], &childs, sizeof childs), sizeof childs);
        _exit(0);
    }
    CHECK_EQUAL(read(ends[0], &childs, sizeof childs), sizeof childs);
    CHECK(check_child(child));
    CHECK(memcmp(&parents, &childs, sizeof parents) != 0);
    opscope_clear_callbacks();
}

int main(void)
{
    RUN(countdowns_have_the_geometric_distribution);
    RUN(tiny_probabilities_are_exact_too);
    RUN(probabilities_at_the_ends_of_a_double_stay_in_range);
    RUN(one_always_fires_and_zero_never);
    RUN(callbacks_fire_independently_at_their_own_rates);
    RUN(scopes_count_down_by_themselves);
    RUN(coming_and_going_of_others_does_not_bias_a_rate);
    RUN(two_threads_never_draw_the_same_sequence);
    RUN(a_seed_makes_a_threads_sequence_repeatable);
    RUN(a_forked_child_draws_another_sequence);
    return 0;
}
