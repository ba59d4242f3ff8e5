/* tests/native/test_recorder.c -- what the recorder counts: calls, times, errors, phases, labels,
 * nesting, threads, sampling. test_recorder_life.c has its life cycle, test_full.c its limits. */
#include <math.h>
#include <pthread.h>

#include "opscope/debug_info.h"
#include "ranges.h"
#include "read_segment.h"

static void calls_of_one_thread_are_exact_and_in_the_histogram(void)
{
    start_recorder("");
    run_ranges(op_named("a"), 1000);
    run_ranges(op_named("b"), 234);
    struct segment *segment = read_own(); /* while it runs */
    struct totals a = segment_sum_of(segment, "a"), b = segment_sum_of(segment, "b");
    CHECK_EQUAL(a.samples, 1000);
    CHECK_EQUAL(a.weight, 1000 * ONE);
    CHECK_EQUAL(a.histogram_weight, 1000 * ONE);
    CHECK_EQUAL(a.whole_ticks, a.total_ticks);
    CHECK_EQUAL(a.self_ticks, a.total_ticks);
    CHECK_EQUAL(b.samples, 234);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 1234);
    CHECK_EQUAL(segment->header->state, OPSCOPE_SEGMENT_LIVE);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    CHECK_EQUAL(segment->header->pid, getpid());
    segment_free(segment);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void nest(const opscope_op *const *ops, int depth)
{
    opscope_range range;
    opscope_range_open(&range, ops[depth % 4], NULL);
    for (int i = 0; i < 3 && depth < 7; i++) {
        nest(ops, depth + 1);
    }
    opscope_range_close(&range);
}

static void self_times_of_a_tree_add_up_to_its_outermost_to_the_tick(void)
{
    const opscope_op *ops[4] = {op_named("n0"), op_named("n1"), op_named("n2"), op_named("n3")};
    const opscope_op *outermost = op_named("outermost");
    start_recorder("");
    for (int i = 0; i < 5; i++) {
        opscope_range range;
        opscope_range_open(&range, outermost, NULL);
        nest(ops, 0);
        opscope_range_close(&range);
    }
    struct segment *segment = stop_and_read();
    struct totals all = segment_sum(segment, 0, ANY, ANY);
    CHECK_EQUAL(all.samples, 5 * (1 + (2187 * 3 - 1) / 2));
    CHECK_EQUAL(all.self_ticks, segment_sum_of(segment, "outermost").total_ticks);
    CHECK_EQUAL(all.whole_ticks, all.total_ticks);
    segment_free(segment);
}

static void failed_ranges_are_counted_as_errors_too(void)
{
    start_recorder("");
    for (int i = 0; i < 100; i++) {
        opscope_range range;
        opscope_range_open(&range, op_named("fails"), NULL);
        if (i % 5 == 0) {
            opscope_range_fail(&range);
        }
        opscope_range_close(&range);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "fails").samples, 100);
    CHECK_EQUAL(segment_sum_of(segment, "fails").error_weight, 20 * ONE);
    segment_free(segment);
}

static void a_weak_phase_gives_way_to_the_strong_one_around_it(void)
{
    const opscope_op *weak = op_of("weak", OPSCOPE_FUNCTION, OPSCOPE_FORWARD);
    const opscope_op *data = op_of("data", OPSCOPE_FUNCTION, OPSCOPE_DATA);
    start_recorder("");
    opscope_range backward, other, strong;
    run_ranges(weak, 1);
    opscope_range_open(&backward, op_of("back", OPSCOPE_BACKWARD_FUNCTION, OPSCOPE_BACKWARD), NULL);
    opscope_range_open(&other, op_of("block", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER), NULL);
    run_ranges(weak, 10);
    opscope_range_open(&strong, data, NULL);
    run_ranges(weak, 100);
    opscope_range_close(&strong);
    opscope_range_close(&other);
    opscope_range_close(&backward);
    run_ranges(weak, 1000);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, weak->id, OPSCOPE_FORWARD, ANY).samples, 1001);
    CHECK_EQUAL(segment_sum(segment, weak->id, OPSCOPE_BACKWARD, ANY).samples, 10);
    CHECK_EQUAL(segment_sum(segment, weak->id, OPSCOPE_DATA, ANY).samples, 100);
    CHECK_EQUAL(segment_sum(segment, data->id, OPSCOPE_DATA, ANY).samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "block").samples, 1);
    segment_free(segment);
}

static int label_set(const struct segment *segment, const char *text, size_t bytes)
{
    const opscope_entry *entry = segment_find(segment, OPSCOPE_ENTRY_LABELS, text, bytes);
    CHECK(entry != NULL);
    return (int)entry->id;
}

static void ranges_count_under_the_labels_they_were_opened_with(void)
{
    opscope_debug_info_guard model, host, unlisted;
    CHECK_EQUAL(opscope_debug_info_push("model_id", "before", &model), OPSCOPE_OK);
    start_recorder("model_id,tier");
    struct segment *segment = read_own();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 0); /* nothing from the start itself */
    segment_free(segment);
    run_ranges(op_named("a"), 1);
    opscope_debug_info_pop(&model);
    run_ranges(op_named("a"), 10);
    CHECK_EQUAL(opscope_debug_info_push("model_id", "resnet", &model), OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("other_key", "x", &unlisted), OPSCOPE_OK);
    run_ranges(op_named("a"), 100);
    CHECK_EQUAL(opscope_debug_info_push("tier", "gold", &host), OPSCOPE_OK);
    opscope_range across;
    opscope_range_open(&across, op_named("a"), NULL);
    run_ranges(op_named("a"), 999);
    opscope_debug_info_pop(&host);
    opscope_range_close(&across);
    opscope_debug_info_pop(&unlisted);
    CHECK_EQUAL(opscope_debug_info_push("model_id", NULL, &unlisted), OPSCOPE_OK); /* masked */
    run_ranges(op_named("a"), 7);
    CHECK_EQUAL(opscope_debug_info_push("tier", "free", &host), OPSCOPE_OK);
    run_ranges(op_named("a"), 5);
    opscope_debug_info_pop(&host);
    opscope_debug_info_pop(&unlisted);
    run_ranges(op_named("a"), 20);
    opscope_debug_info_pop(&model);
    segment = stop_and_read();
#define SUM(text) segment_sum(segment, 0, ANY, label_set(segment, text, sizeof text)).samples
    CHECK_EQUAL(segment_sum(segment, 0, ANY, 0).samples, 10 + 7);
    CHECK_EQUAL(SUM("tier\0free"), 5);
    CHECK_EQUAL(SUM("model_id\0before"), 1);
    CHECK_EQUAL(SUM("model_id\0resnet"), 100 + 20);
    CHECK_EQUAL(SUM("model_id\0resnet\0tier\0gold"), 1000);
    segment_free(segment);
}

static void label_sets_beyond_1023_share_the_one_called_other(void)
{
    start_recorder("request");
    for (int i = 0; i < 3000; i++) {
        char value[32];
        opscope_debug_info_guard guard;
        snprintf(value, sizeof value, "%d", i % 1500);
        CHECK_EQUAL(opscope_debug_info_push("request", value, &guard), OPSCOPE_OK);
        run_ranges(op_named("a"), 1);
        opscope_debug_info_pop(&guard);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_entry_count(segment, OPSCOPE_ENTRY_LABELS), 1023);
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 3000);
    CHECK_EQUAL(SUM("request\0"
                    "1021"),
                2);
    CHECK_EQUAL(SUM("request\0other"), 3000 - 2 * 1022);
    segment_free(segment);
}

static void recurse(const opscope_op *op, int depth)
{
    opscope_range range;
    opscope_range_open(&range, op, NULL);
    if (depth > 1) {
        recurse(op, depth - 1);
    }
    opscope_range_close(&range);
}

static void ranges_deeper_than_256_are_dropped_and_said_so(void)
{
    start_recorder("");
    recurse(op_named("deep"), 256);
    recurse(op_named("deep"), 300);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "deep").samples, 512);
    CHECK_EQUAL(segment->header->dropped_count, 44);
    segment_free(segment);
}

static void ranges_that_end_after_the_one_around_them_are_dropped_and_said_so(void)
{
    start_recorder("");
    opscope_range outer, inner, innermost;
    opscope_range_open(&outer, op_named("outer"), NULL);
    opscope_range_open(&inner, op_named("inner"), NULL);
    opscope_range_open(&innermost, op_named("innermost"), NULL);
    opscope_range_close(&outer);
    run_ranges(op_named("a"), 10);
    opscope_range_close(&inner);
    opscope_range_close(&innermost);
    run_ranges(op_named("a"), 10);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "outer").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 20);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples + segment->header->dropped_count, 23);
    segment_free(segment);
}

static void *close_async(void *range)
{
    opscope_range_end(range);
    return NULL;
}

static void *open_async(void *info)
{
    opscope_range *range = opscope_range_begin(op_named("async"), info);
    CHECK(range != NULL);
    return range;
}

static void *on_new_thread(void *(*function)(void *), void *arg)
{
    pthread_t thread;
    void *result;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, arg), 0);
    CHECK_EQUAL(pthread_join(thread, &result), 0);
    return result;
}

static void an_async_range_counts_wherever_it_ends_with_its_self_time_unknown(void)
{
    opscope_range_info info = {.sequence_nr = -1, .is_async = true};
    for (int sampled = 0; sampled < 2; sampled++) {
        start_recorder("");
        if (sampled) { /* almost always, so that no range is known completely */
            CHECK_EQUAL(opscope_recorder_set_sampling(1.0 - 0x1p-53, 0, 0), OPSCOPE_OK);
        }
        on_new_thread(close_async, open_async(&info));                /* a thread without a table */
        on_new_thread(close_async, on_new_thread(open_async, &info)); /* its opener has ended */
        close_async(on_new_thread(open_async, &info));
        opscope_range *range = open_async(&info);
        run_ranges(op_named("a"), 5);
        opscope_range_end(range);
        struct segment *segment = stop_and_read();
        CHECK_EQUAL(segment_sum_of(segment, "async").samples, 4);
        CHECK_EQUAL(segment_sum_of(segment, "async").whole_ticks, 0);
        CHECK_EQUAL(segment_sum_of(segment, "a").samples, 5);
        CHECK_EQUAL(segment_sum_of(segment, "a").whole_ticks,
                    sampled ? 0 : segment_sum_of(segment, "a").total_ticks);
        CHECK_EQUAL(segment->header->dropped_count, 0);
        segment_free(segment);
    }
}

enum { THREADS = 4, ROUNDS = 25, EACH = 400 };

static void *run_some(void *unused)
{
    (void)unused;
    recurse(op_named("threads"), EACH / 2);
    run_ranges(op_named("threads"), EACH / 2);
    return NULL;
}

static void threads_that_come_and_go_share_a_few_tables_and_lose_nothing(void)
{
    start_recorder("");
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQUAL(pthread_create(&threads[i], NULL, run_some, NULL), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
        }
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "threads").samples, THREADS * ROUNDS * EACH);
    CHECK_EQUAL(segment_sum_of(segment, "threads").histogram_weight,
                (uint64_t)THREADS * ROUNDS * EACH * ONE);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    CHECK(segment_sum(segment, opscope_op_other()->id, ANY, ANY).cells <= THREADS + 1); /* tables */
    segment_free(segment);
}

static void a_sampled_estimate_is_within_five_standard_errors(void)
{
    enum { TRUE_CALLS = 200000, SEEDS = 10 };
    const double prob = 0.01, error = sqrt(TRUE_CALLS * (1 - prob) / prob);
    double sum = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        start_recorder("");
        CHECK_EQUAL(opscope_recorder_set_sampling(prob, 0, 0), OPSCOPE_OK);
        opscope_seed(seed);
        run_ranges(op_named("sampled"), TRUE_CALLS);
        struct segment *segment = stop_and_read();
        struct totals totals = segment_sum_of(segment, "sampled");
        double estimate = (double)totals.weight / (double)ONE;
        CHECK(fabs(estimate - TRUE_CALLS) < 5 * error);
        CHECK(fabs(estimate - 100.0 * (double)totals.samples) < 1e-3 * estimate);
        CHECK_EQUAL(totals.whole_ticks, 0); /* the children of a sampled range are unknown */
        CHECK_EQUAL(totals.histogram_weight, totals.weight);
        CHECK_EQUAL(segment->header->sampling_prob_ppt, 10000000000);
        sum += estimate;
        segment_free(segment);
    }
    opscope_seed(0);
    CHECK(fabs(sum / SEEDS - TRUE_CALLS) < 5 * error / sqrt(SEEDS));
}

static int fail(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)user;
    (void)context;
    return OPSCOPE_ERR_CALLBACK;
}

static void failures_of_callbacks_are_in_the_header(void)
{
    start_recorder("");
    opscope_handle handle = add_global((opscope_callback){.start = fail, .sampling_prob = 1.0});
    run_ranges(op_named("a"), 7);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment->header->callback_error_count, 7);
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 7);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(calls_of_one_thread_are_exact_and_in_the_histogram);
    RUN(self_times_of_a_tree_add_up_to_its_outermost_to_the_tick);
    RUN(failed_ranges_are_counted_as_errors_too);
    RUN(a_weak_phase_gives_way_to_the_strong_one_around_it);
    RUN(ranges_count_under_the_labels_they_were_opened_with);
    RUN(label_sets_beyond_1023_share_the_one_called_other);
    RUN(ranges_deeper_than_256_are_dropped_and_said_so);
    RUN(ranges_that_end_after_the_one_around_them_are_dropped_and_said_so);
    RUN(an_async_range_counts_wherever_it_ends_with_its_self_time_unknown);
    RUN(threads_that_come_and_go_share_a_few_tables_and_lose_nothing);
    RUN(a_sampled_estimate_is_within_five_standard_errors);
    RUN(failures_of_callbacks_are_in_the_header);
    remove_directory();
    return 0;
}
