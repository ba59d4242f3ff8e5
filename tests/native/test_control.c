/* tests/native/test_control.c -- the control block: settings take effect in a running recorder,
 * with every kind of sampling; invalid ones change nothing; a child inherits them. */
#define _GNU_SOURCE
#include <math.h>
#include <sys/wait.h>
#include <time.h>

#include "control_block.h"
#include "opscope/debug_info.h"
#include "record/callback.h"
#include "record/demand.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the next window is days away */
static const uint64_t ONE_PPT = 1000000000000;

static void every_way_of_sampling_hears_and_changes_into_every_other(void)
{
    const opscope_control *ways[] = {&all, &seldom, &off, &windows};
    /* Each change after each other one, and after itself. */
    static const int path[] = {0, 0, 1, 0, 2, 0, 3, 1, 1, 2, 1, 3, 2, 2, 3, 3, 0};
    start_with(1.0, 0, 0);
    int fd = open_own();
    for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) {
        const int way = path[i];
        ask_and_await(fd, ways[way]);
        const opscope_segment_header header = header_of(fd);
        uint64_t before = samples_of("after");
        run_ranges(op_named("after"), 100);
        CHECK_EQUAL(samples_of("after") - before, way == 0 ? 100 : 0);
        CHECK_EQUAL(header.is_disabled, way == 2);
        CHECK_EQUAL(header.window_ns, way == 3 ? 10000000 : 0);
        CHECK_EQUAL(header.sampling_prob_ppt, way == 1 ? 1 : ONE_PPT);
        /* Operators call nothing while they are not recorded. Outer ranges are followed while
         * operators are sampled. */
        struct opscope__demand demand;
        opscope__demand_read(&demand);
        CHECK_EQUAL(demand.scopes != 0, way < 2);
        CHECK_EQUAL(demand.outer_scopes, way % 2 != 0 ? 1u << OPSCOPE_USER_SCOPE : 0);
    }
    close(fd);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void probability_zero_hears_too(void)
{
    start_with(0.0, 0, 0);
    run_ranges(op_named("first"), 1); /* from here on a thread polls */
    CHECK(!opscope_has_callbacks());
    int fd = open_own();
    ask_and_await(fd, &all);
    run_ranges(op_named("seen"), 10);
    CHECK_EQUAL(samples_of("seen"), 10);
    close(fd);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void nothing_given_is_as_configured(void)
{
    start_with(1.0, 5000000, NEVER_NS);
    int fd = open_own();
    ask_and_await(fd, &all);
    CHECK_EQUAL(header_of(fd).window_ns, 0);
    ask_and_await(fd, &(opscope_control){.given = 0});
    CHECK_EQUAL(header_of(fd).window_ns, 5000000);
    CHECK_EQUAL(header_of(fd).period_ns, NEVER_NS);
    ask_and_await(fd, &all);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_WINDOWS});
    CHECK_EQUAL(header_of(fd).window_ns, 5000000);
    close(fd);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void what_cannot_be_is_refused_and_changes_nothing(void)
{
    const struct {
        opscope_control change;
        uint64_t refused;
    } cases[] = {
        {{.given = OPSCOPE_CONTROL_SAMPLING, .sampling_prob_ppt = 1000000000001},
         OPSCOPE_CONTROL_SAMPLING},
        {{.given = OPSCOPE_CONTROL_SAMPLING, .sampling_prob_ppt = UINT64_MAX},
         OPSCOPE_CONTROL_SAMPLING},
        {{.given = OPSCOPE_CONTROL_WINDOWS, .window_ns = 5, .period_ns = 5},
         OPSCOPE_CONTROL_WINDOWS},
        {{.given = OPSCOPE_CONTROL_WINDOWS, .window_ns = 1, .period_ns = 1000000000},
         OPSCOPE_CONTROL_WINDOWS},
        {{.given = OPSCOPE_CONTROL_WINDOWS, .window_ns = 1, .period_ns = UINT64_MAX},
         OPSCOPE_CONTROL_WINDOWS},
        {{.given = OPSCOPE_CONTROL_WINDOWS, .window_ns = 0, .period_ns = 7},
         OPSCOPE_CONTROL_WINDOWS},
        {{.given = OPSCOPE_CONTROL_ENABLED, .enabled = 2}, OPSCOPE_CONTROL_ENABLED},
        {{.given = OPSCOPE_CONTROL_MAX_OVERHEAD, .max_overhead_ppb = 1000000001},
         OPSCOPE_CONTROL_MAX_OVERHEAD},
        {{.given = OPSCOPE_CONTROL_LABELS, .label_keys = "a,b,c"}, OPSCOPE_CONTROL_LABELS},
        {{.given = OPSCOPE_CONTROL_LABELS, .label_keys = "a,a"}, OPSCOPE_CONTROL_LABELS},
        {{.given = OPSCOPE_CONTROL_LABELS, .label_keys = "a\nb"}, OPSCOPE_CONTROL_LABELS},
        {{.given = OPSCOPE_CONTROL_LABELS,
          .label_keys = "0123456789012345678901234567890123456789012345678901234567890123"},
         OPSCOPE_CONTROL_LABELS},
        {{.given = 6, .window_ns = 1, .period_ns = 2}, 6},
        {{.given = 64, .enabled = 1}, 64},
        {{.given = OPSCOPE_CONTROL_ENABLED | OPSCOPE_CONTROL_SAMPLING,
          .sampling_prob_ppt = UINT64_MAX},
         OPSCOPE_CONTROL_SAMPLING},
    };
    start_with(1.0, 0, 0);
    int fd = open_own();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        opscope_control_answer answer = await(fd, ask(fd, &cases[i].change));
        CHECK_EQUAL(answer.settings_status, -OPSCOPE_ERR_INVALID);
        CHECK_EQUAL(answer.refused, cases[i].refused);
        uint64_t before = samples_of("still");
        run_ranges(op_named("still"), 10);
        CHECK_EQUAL(samples_of("still") - before, 10);
    }
    opscope_control unended = {.given = OPSCOPE_CONTROL_LABELS};
    memset(unended.label_keys, 'x', sizeof unended.label_keys);
    CHECK_EQUAL(await(fd, ask(fd, &unended)).refused, OPSCOPE_CONTROL_LABELS);
    close(fd);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void a_block_half_written_is_left_alone_until_it_is_whole(void)
{
    start_with(1.0, 0, 0);
    int fd = open_own();
    ask_and_await(fd, &all);
    opscope_control change = off;
    change.serial = 3;
    change.settings_serial = 2;
    write_at(fd, &change, sizeof change, OPSCOPE_SEGMENT_CONTROL_OFFSET);
    opscope_control_answer answer = answer_of(fd);
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do { /* at least two polls */
        run_ranges(op_named("seen"), 1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 250000000);
    CHECK_EQUAL(answer_of(fd).settings_serial, answer.settings_serial);
    CHECK(opscope_has_callbacks());
    change.serial = 4;
    write_at(fd, &change, sizeof change, OPSCOPE_SEGMENT_CONTROL_OFFSET);
    CHECK_EQUAL(await(fd, 2).settings_status, 0);
    CHECK(!opscope_has_callbacks());
    close(fd);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void counts_are_exact_over_every_change(void)
{
    uint64_t expected = 0;
    start_with(1.0, 0, 0);
    int fd = open_own();
    for (int i = 0; i < 4; i++) {
        run_ranges(op_named("exact"), 1000);
        expected += 1000;
        ask_and_await(fd, i % 2 == 0 ? &windows : &off);
        run_ranges(op_named("exact"), 1000);
        ask_and_await(fd, &all);
    }
    close(fd);
    struct segment *segment = stop_and_read();
    struct totals totals = segment_sum_of(segment, "exact");
    CHECK_EQUAL(totals.samples, expected);
    CHECK_EQUAL(totals.weight, expected * ONE);
    CHECK_EQUAL(totals.histogram_weight, expected * ONE);
    CHECK_EQUAL(totals.whole_ticks, totals.total_ticks);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

static void a_range_open_over_a_change_has_an_unknown_self_time(void)
{
    start_with(1.0, 0, 0);
    int fd = open_own();
    opscope_range over;
    opscope_range_open(&over, op_named("over"), NULL);
    ask_and_await(fd, &off);
    ask_and_await(fd, &all);
    opscope_range_close(&over);
    close(fd);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "over").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "over").whole_ticks, 0);
    segment_free(segment);
}

static int label_set(const struct segment *segment, const char *text, size_t bytes)
{
    const opscope_entry *entry = segment_find(segment, OPSCOPE_ENTRY_LABELS, text, bytes);
    CHECK(entry != NULL);
    return (int)entry->id;
}

static void other_keys_become_labels(void)
{
    opscope_debug_info_guard model, tenant;
    start_with(1.0, 0, 0);
    int fd = open_own();
    CHECK_EQUAL(opscope_debug_info_push("model", "m", &model), OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("tenant", "t", &tenant), OPSCOPE_OK);
    run_ranges(op_named("a"), 1);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_LABELS, .label_keys = "tenant"});
    run_ranges(op_named("a"), 2);
    ask_and_await(
        fd, &(opscope_control){.given = OPSCOPE_CONTROL_LABELS, .label_keys = "tenant,model"});
    run_ranges(op_named("a"), 3);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_LABELS});
    run_ranges(op_named("a"), 4);
    ask_and_await(fd, &(opscope_control){.given = 0});
    run_ranges(op_named("a"), 5);
    opscope_debug_info_pop(&tenant);
    opscope_debug_info_pop(&model);
    close(fd);
    struct segment *segment = stop_and_read();
    const uint32_t a = segment_op(segment, "a");
    const int by_model = label_set(segment, "model\0m", sizeof "model\0m");
    const int by_tenant = label_set(segment, "tenant\0t", sizeof "tenant\0t");
    const int by_both = label_set(segment, "tenant\0t\0model\0m", sizeof "tenant\0t\0model\0m");
    CHECK_EQUAL(segment_sum(segment, a, ANY, by_model).samples, 1 + 5);
    CHECK_EQUAL(segment_sum(segment, a, ANY, by_tenant).samples, 2);
    CHECK_EQUAL(segment_sum(segment, a, ANY, by_both).samples, 3);
    CHECK_EQUAL(segment_sum(segment, a, ANY, 0).samples, 4);
    CHECK(segment_find(segment, OPSCOPE_ENTRY_NOTE, "labels\0tenant", sizeof "labels\0tenant"));
    segment_free(segment);
}

static void a_set_without_room_is_other_of_the_keys_of_now(void)
{
    opscope_debug_info_guard guard;
    char value[16];
    start_with(1.0, 0, 0);
    int fd = open_own();
    for (int i = 0; i < 1100; i++) { /* more than the limit */
        snprintf(value, sizeof value, "%d", i);
        CHECK_EQUAL(opscope_debug_info_push("model", value, &guard), OPSCOPE_OK);
        run_ranges(op_named("a"), 1);
        opscope_debug_info_pop(&guard);
    }
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_LABELS, .label_keys = "tenant"});
    CHECK_EQUAL(opscope_debug_info_push("tenant", "t", &guard), OPSCOPE_OK);
    run_ranges(op_named("b"), 3);
    opscope_debug_info_pop(&guard);
    close(fd);
    struct segment *segment = stop_and_read();
    const int other = label_set(segment, "tenant\0other", sizeof "tenant\0other");
    CHECK_EQUAL(segment_sum(segment, segment_op(segment, "b"), ANY, other).samples, 3);
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 1100);
    segment_free(segment);
}

static void the_block_lies_over_what_was_inherited_and_can_stand_alone(void)
{
    uint64_t refused = 0;
    const opscope_control half = {.given = OPSCOPE_CONTROL_SAMPLING,
                                  .sampling_prob_ppt = ONE_PPT / 2};
    const opscope_control bad = {.given = OPSCOPE_CONTROL_ENABLED, .enabled = 9};
    CHECK_EQUAL(opscope_recorder_inherit(&half, &refused), OPSCOPE_ERR_NOT_FOUND);
    start_with(1.0, 0, 0);
    int fd = open_own();
    CHECK_EQUAL(opscope_recorder_inherit(&bad, &refused), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(refused, OPSCOPE_CONTROL_ENABLED);
    CHECK_EQUAL(header_of(fd).sampling_prob_ppt, ONE_PPT);
    CHECK_EQUAL(opscope_recorder_inherit(&half, &refused), OPSCOPE_OK);
    CHECK_EQUAL(header_of(fd).sampling_prob_ppt, ONE_PPT / 2);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_LABELS, .label_keys = "tenant"});
    CHECK_EQUAL(header_of(fd).sampling_prob_ppt, ONE_PPT / 2);
    ask_and_await(fd, &windows);
    CHECK_EQUAL(header_of(fd).window_ns, 10000000);
    CHECK_EQUAL(opscope_recorder_set_sampling(0.25, 0, 0),
                OPSCOPE_OK); /* the controller's setting stays */
    CHECK_EQUAL(header_of(fd).window_ns, 10000000);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_ALONE});
    CHECK_EQUAL(header_of(fd).window_ns, 0);
    CHECK_EQUAL(header_of(fd).sampling_prob_ppt, ONE_PPT / 4);
    close(fd);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void what_a_framework_draws_more_often_than_asked_for_is_thinned_out(void)
{
    enum { DRAWN = 100000 };
    const double prob = 1.0 / 1024;
    uint64_t kept = 0;
    struct opscope__demand demand;
    start_with(prob, 0, 0);
    opscope_seed(5);
    opscope__demand_read(&demand);
    CHECK(demand.prob == OPSCOPE__DRAWN_PROB_LEAST);
    for (int i = 0; i < DRAWN; i++) {
        if (opscope__range_was_drawn(OPSCOPE_FUNCTION)) {
            run_ranges(op_named("drawn"), 1); /* the countdown ends here, whatever its value was */
            kept++;
        }
    }
    const double share = prob / demand.prob, expected = DRAWN * share;
    CHECK(fabs((double)kept - expected) < 5 * sqrt(expected * (1 - share)));
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "drawn").samples, kept);
    CHECK_EQUAL(segment_sum_of(segment, "drawn").weight, kept * 1024 * ONE);
    segment_free(segment);
    start_with(0.5, 0, 0);
    opscope__demand_read(&demand);
    CHECK(demand.prob == 0.5);
    for (int i = 0; i < 100; i++) {
        CHECK(opscope__range_was_drawn(OPSCOPE_FUNCTION));
        run_ranges(op_named("drawn"), 1);
    }
    CHECK_EQUAL(samples_of("drawn"), 100);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* In a child: how it applies its own block. */
static void child_is_controlled(bool is_off)
{
    run_ranges(op_named("first"), 1); /* makes the child's segment */
    run_ranges(op_named("child"), 10);
    CHECK_EQUAL(opscope_has_callbacks(), !is_off);
    int fd = open_own();
    opscope_control block;
    read_at(fd, &block, sizeof block, OPSCOPE_SEGMENT_CONTROL_OFFSET);
    CHECK_EQUAL(block.serial, 0);
    CHECK_EQUAL(header_of(fd).is_disabled, is_off);
    CHECK_EQUAL(samples_of("child"), is_off ? 0 : 10);
    /* Another setting does not change inherited ones. */
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_LABELS, .label_keys = "tenant"});
    CHECK_EQUAL(header_of(fd).is_disabled, is_off);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_ENABLED, .enabled = 1});
    run_ranges(op_named("enabled"), 10);
    CHECK_EQUAL(samples_of("enabled"), 10);
    ask_and_await(fd, &(opscope_control){.given = OPSCOPE_CONTROL_ALONE});
    close(fd);
}

static void a_child_goes_on_with_what_was_in_force(void)
{
    for (int is_off = 0; is_off <= 1; is_off++) {
        start_with(1.0, 0, 0);
        int fd = open_own();
        ask_and_await(fd, is_off ? &off : &all);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            child_is_controlled(is_off);
            _exit(0);
        }
        int status;
        CHECK_EQUAL(waitpid(pid, &status, 0), pid);
        CHECK_EQUAL(status, 0);
        CHECK_EQUAL(header_of(fd).is_disabled, is_off);
        close(fd);
        CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    }
}

int main(void)
{
    make_directory();
    RUN(every_way_of_sampling_hears_and_changes_into_every_other);
    RUN(probability_zero_hears_too);
    RUN(nothing_given_is_as_configured);
    RUN(what_cannot_be_is_refused_and_changes_nothing);
    RUN(a_block_half_written_is_left_alone_until_it_is_whole);
    RUN(counts_are_exact_over_every_change);
    RUN(a_range_open_over_a_change_has_an_unknown_self_time);
    RUN(other_keys_become_labels);
    RUN(a_set_without_room_is_other_of_the_keys_of_now);
    RUN(the_block_lies_over_what_was_inherited_and_can_stand_alone);
    RUN(what_a_framework_draws_more_often_than_asked_for_is_thinned_out);
    RUN(a_child_goes_on_with_what_was_in_force);
    remove_directory();
    return 0;
}
