/* tests/native/test_cost.c -- the cost of recording: the process and a reader of its file compute
 * the same sum, whatever the cost of its operators; how a trial measures an extra cost and restores
 * everything. */
#include <math.h>
#include <sys/wait.h>
#include <time.h>

#include "ranges.h"
#include "read_segment.h"
#include "recorder/cost.h"
#include "recorder/cost_trial.h"
#include "recorder/state.h"

static const uint64_t EXTRA_PS = 123457;

/* As a reader computes it: from the cells and the entries of the file. */
static uint64_t cost_ns(const struct segment *segment)
{
    const opscope_entry *entry;
    uint64_t ps = segment_sum(segment, 0, ANY, ANY).samples * segment->header->record_cost_ps;
    for (uint32_t i = 0; (entry = segment_entry(segment, OPSCOPE_ENTRY_OP, i)) != NULL; i++) {
        ps += segment_sum(segment, entry->id, ANY, ANY).samples * entry->extra_cost_ps;
    }
    const uint64_t factor_ppm = segment->header->cost_factor_ppm;
    return (uint64_t)((unsigned __int128)ps * (factor_ppm != 0 ? factor_ppm : 1000000) / 1000000) /
           1000;
}

static uint64_t own_cost_ns(void)
{
    struct opscope__cost cost;
    opscope__recorder_read_cost(&cost);
    return cost.recording_ns;
}

static uint32_t extra_of(const struct segment *segment, const char *name)
{
    const opscope_entry *entry;
    for (uint32_t i = 0; (entry = segment_entry(segment, OPSCOPE_ENTRY_OP, i)) != NULL; i++) {
        if (strcmp(entry_text(entry), name) == 0) {
            return entry->extra_cost_ps;
        }
    }
    return UINT32_MAX;
}

static void process_and_reader_come_to_the_same_sum(void)
{
    const opscope_op *dear = op_named("dear"), *cheap = op_named("cheap");
    opscope_recorder_extra_cost(dear->id, EXTRA_PS);
    start_recorder("");
    CHECK_EQUAL(own_cost_ns(), 0);
    run_ranges(cheap, 1001);
    struct segment *segment = read_own();
    CHECK_EQUAL(own_cost_ns(), 1001 * segment->header->record_cost_ps / 1000);
    segment_free(segment);
    run_ranges(dear, 77);
    const uint64_t own = own_cost_ns();
    segment = stop_and_read();
    CHECK_EQUAL(own, cost_ns(segment));
    const double every_ns = 1.078 * (double)segment->header->record_cost_ps;
    CHECK(fabs((double)own - every_ns - 0.077 * (double)EXTRA_PS) < 2.0);
    CHECK_EQUAL(extra_of(segment, "dear"), EXTRA_PS);
    CHECK_EQUAL(extra_of(segment, "cheap"), 0);
    segment_free(segment);
}

static void an_extra_cost_is_decided_once_and_before_the_first_range(void)
{
    const opscope_op *twice = op_named("twice"), *late = op_named("late"), *huge = op_named("huge");
    start_recorder("");
    opscope_recorder_extra_cost(twice->id, 0); /* has no effect */
    opscope_recorder_extra_cost(twice->id, 5000);
    opscope_recorder_extra_cost(twice->id, 7000);
    opscope_recorder_extra_cost(huge->id, UINT64_MAX);
    opscope_recorder_extra_cost(opscope_op_other()->id, 1000); /* has no entry for it */
    opscope_recorder_extra_cost(0, 1000);
    opscope_recorder_extra_cost(UINT32_MAX, 1000);
    run_ranges(twice, 10);
    run_ranges(late, 10);
    run_ranges(huge, 10);
    run_ranges(opscope_op_other(), 10);
    opscope_recorder_extra_cost(late->id, 9000);
    run_ranges(late, 10);
    const uint64_t own = own_cost_ns();
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(extra_of(segment, "twice"), 5000);
    CHECK_EQUAL(extra_of(segment, "late"), 0);
    CHECK_EQUAL(extra_of(segment, "huge"), 20000000);
    CHECK_EQUAL(own, cost_ns(segment));
    segment_free(segment);
    start_recorder(""); /* nor does another segment of the process change it */
    run_ranges(late, 10);
    run_ranges(twice, 10);
    segment = stop_and_read();
    CHECK_EQUAL(extra_of(segment, "twice"), 5000);
    CHECK_EQUAL(extra_of(segment, "late"), 0);
    segment_free(segment);
}

static void a_forked_child_has_its_parents_costs(void)
{
    const opscope_op *op = op_named("of the parent");
    char path[512];
    opscope_recorder_extra_cost(op->id, EXTRA_PS);
    start_recorder("");
    pid_t pid = fork();
    if (pid == 0) {
        run_ranges(op, 3);
        CHECK_EQUAL(opscope_recorder_stop(false), OPSCOPE_OK);
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    CHECK_EQUAL(list_directory(path, sizeof path), 1);
    struct segment *segment = segment_read(path);
    CHECK_EQUAL(extra_of(segment, "of the parent"), EXTRA_PS);
    CHECK(cost_ns(segment) >= (3 * segment->header->record_cost_ps + 3 * EXTRA_PS) / 1000);
    segment_free(segment);
}

/* Warm-ups record ranges with weight 0. Those that a bridge counts itself are not counted twice. */
static void ranges_without_weight_are_counted_as_in_no_cell(void)
{
    const opscope_op *op = op_named("in_no_cell"), *bridges = op_named("in_no_cell_of_a_bridge");
    opscope__cost_bridge_counts(bridges->id);
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 10000000, .period_ns = 1000000000000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_window_begin(8.0), OPSCOPE_OK);
    struct opscope__cost before, within, after;
    opscope__recorder_read_cost(&before);
    opscope__recorder_set_weights(0, 0);
    run_ranges(op, 5);
    run_ranges(bridges, 7);
    opscope__recorder_read_cost(&within);
    opscope__recorder_set_weights(8 * OPSCOPE__WEIGHT_ONE, 8 * OPSCOPE__WEIGHT_ONE);
    run_ranges(op, 3);
    opscope__recorder_read_cost(&after);
    CHECK_EQUAL(within.in_no_cell_count - before.in_no_cell_count, 5);
    CHECK_EQUAL(within.counted_count, before.counted_count);
    CHECK_EQUAL(after.in_no_cell_count, within.in_no_cell_count);
    CHECK_EQUAL(after.counted_count - within.counted_count, 3);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* Ranges with a declared cost far above the real one: they exceed the program's whole time. */
static void the_governor_counts_what_operators_cost(void)
{
    const opscope_op *op = op_named("dearest");
    opscope_recorder_extra_cost(op->id, UINT64_MAX);
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .sampling_prob = 1.0, .max_overhead_ppb = 10000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    uint64_t overhead_ppb = 0, adaptation_count = 0;
    while (adaptation_count == 0) { /* two seconds */
        run_ranges(op, 20000);
        struct segment *segment = read_own();
        overhead_ppb = segment->header->overhead_ppb;
        adaptation_count = segment->header->adaptation_count;
        segment_free(segment);
    }
    CHECK(overhead_ppb > 1000000000);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* ---- trials --------------------------------------------------------------------------------------- */

enum { CALLS = 5 };

static bool is_fired(const opscope_op *op)
{
    opscope_range range;
    opscope_range_open(&range, op, NULL);
    const bool fired = range.snapshot != NULL;
    opscope_range_close(&range);
    return fired;
}

/* Otherwise the measured ranges would take the slow path, and cost more than the program's. */
static void a_threads_table_knows_the_cost_of_its_first_operator(void)
{
    start_recorder("");
    const opscope__table *table = opscope__hot.thread->recorder->table;
    const struct opscope__slot *slot = opscope__table_find(table, opscope_op_other()->id);
    CHECK(slot != NULL && slot->cost_ticks > 1);
    CHECK_EQUAL(slot->cost_ticks,
                opscope__table_cost_ticks(opscope__segment_header(&opscope__recorder.segment),
                                          opscope_op_other()->id));
    segment_free(stop_and_read());
}

static double factor_now(void)
{
    (void)own_cost_ns(); /* computes it */
    return (double)opscope__segment_header(&opscope__recorder.segment)->cost_factor_ppm / 1e6;
}

/* What PyTorch's own code costs more than in a loop, no probe sees: a half of the extra cost. */
static void costs_grow_as_probes_say_that_the_program_is_dearer_than_the_loop(void)
{
    enum { COUNT = 1000 };
    start_recorder("");
    run_ranges(op_named("cheap"), COUNT);
    run_ranges(op_named("dear"), COUNT);
    CHECK(factor_now() == 1.0); /* nothing says more */
    opscope__cost_probe_lacks(0.0);
    opscope__cost_probe_loop(true);
    opscope__cost_probe(2000); /* it runs cold */
    for (int i = 0; i < 6; i++) {
        opscope__cost_probe(200);
    }
    opscope__cost_probe_loop(false);
    for (int i = 0; i < 100000; i++) {
        opscope__cost_probe(600);
    }
    opscope__cost_probe(1000000000); /* it was interrupted */
    const opscope_segment_header *header = opscope__segment_header(&opscope__recorder.segment);
    const double range_ps = (double)header->record_cost_ps + (double)EXTRA_PS / 2.0;
    const double ticks = range_ps / 1e12 * (double)header->ticks_per_second;
    const double of_extra = 0.5 * (double)EXTRA_PS / 2.0 / range_ps;
    CHECK(fabs(factor_now() - (1.0 + 400.0 / ticks + of_extra)) < 0.01);
    opscope__cost_probe_lacks(100.0); /* the program's ranges have the recorder in them too */
    CHECK(fabs(factor_now() - (1.0 + 300.0 / ticks + of_extra)) < 0.01);
    opscope__cost_probe_lacks(0.0);
    const double factor = factor_now();
    struct segment *segment = stop_and_read();
    CHECK(fabs((double)segment->header->cost_factor_ppm / 1e6 - factor) < 1e-3);
    segment_free(segment);
}

static void begin_trial(opscope__cost_trial *trial)
{
    CHECK(opscope__cost_trial_begin(trial));
    trial->end_cpu_ns = UINT64_MAX; /* however slow this is */
}

/* A round whose ranges do more while they are observed. */
static void run_round(opscope__cost_trial *trial, bool is_seen)
{
    static uint64_t sink;
    const opscope_op *op = op_named("tried");
    opscope__cost_trial_set(trial, is_seen);
    CHECK(opscope__cost_trial_start(trial));
    for (int i = 0; i < CALLS; i++) {
        const bool fired = is_fired(op);
        CHECK(fired == is_seen);
        for (int k = 0; fired && k < 500; k++) {
            __atomic_fetch_add(&sink, 1, __ATOMIC_RELAXED);
        }
    }
    opscope__cost_trial_stop(trial);
}

static void a_trial_sees_ranges_in_turns_and_leaves_nothing_behind(void)
{
    struct calls calls = {0};
    opscope__cost_trial trial;
    start_recorder("");
    opscope_handle handle = add_global(counting(&calls));
    begin_trial(&trial);
    for (int turn = 0; turn < 40; turn++) {
        run_round(&trial, turn % 2 != 0);
    }
    const uint64_t extra_ps = opscope__cost_trial_end(&trial, CALLS);
    CHECK(extra_ps > 0 && extra_ps < 20000000);
    CHECK_EQUAL(calls.starts, 0);
    run_ranges(op_named("after"), 3); /* everything is restored */
    CHECK_EQUAL(calls.starts, 3);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 3);
    CHECK_EQUAL(segment_op(segment, "tried"), 0);
    segment_free(segment);
}

static void a_disturbed_round_says_nothing_and_is_not_recorded(void)
{
    opscope__cost_trial trial;
    start_recorder("");
    begin_trial(&trial);
    run_round(&trial, false);
    opscope__cost_trial_set(&trial, true);
    CHECK(opscope__cost_trial_start(&trial));
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    CHECK(!is_fired(op_named("tried")));
    opscope__cost_trial_stop(&trial);
    CHECK_EQUAL(opscope__cost_trial_end(&trial, 1), 0); /* no observed round counts */
    CHECK_EQUAL(calls.starts, 0);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 0);
    segment_free(segment);
}

static void a_trial_that_found_no_difference_says_nothing(void)
{
    opscope__cost_trial trial;
    begin_trial(&trial);
    CHECK_EQUAL(opscope__cost_trial_end(&trial, 1), 0);
    bool was_on = opscope_recording_set(false);
    begin_trial(&trial);
    run_round(&trial, true);
    CHECK_EQUAL(opscope__cost_trial_end(&trial, 1), 0);
    CHECK(!opscope_recording()); /* the switch is unchanged */
    opscope_recording_set(was_on);
}

static int try_within(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)context;
    opscope__cost_trial trial;
    *(int *)user = opscope__cost_trial_begin(&trial) ? 1 : -1;
    return OPSCOPE_OK;
}

static void a_trial_that_takes_long_comes_to_its_end(void)
{
    opscope__cost_trial trial;
    CHECK(opscope__cost_trial_begin(&trial));
    while (opscope__cost_trial_start(&trial)) {
        opscope__cost_trial_stop(&trial);
    }
    CHECK_EQUAL(opscope__cost_trial_end(&trial, 1), 0);
}

static void a_trial_does_not_end_because_its_thread_waits(void)
{
    const struct timespec pause = {.tv_nsec = 3000000};
    opscope__cost_trial trial;
    CHECK(opscope__cost_trial_begin(&trial));
    nanosleep(&pause, NULL); /* as on a loaded host, for three times as long as a trial works */
    CHECK(opscope__cost_trial_start(&trial));
    (void)opscope__cost_trial_end(&trial, 1);
}

static void a_callback_tries_nothing(void)
{
    int answer = 0;
    opscope_handle handle =
        add_global((opscope_callback){.start = try_within, .user = &answer, .sampling_prob = 1.0});
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    CHECK_EQUAL(answer, -1);
}

static void a_range_that_outlives_the_trial_is_closed_in_peace(void)
{
    opscope__cost_trial trial;
    opscope_range range;
    start_recorder("");
    begin_trial(&trial);
    opscope__cost_trial_set(&trial, true);
    opscope_range_open(&range, op_named("long"), NULL);
    CHECK_EQUAL(opscope__cost_trial_end(&trial, 1), 0);
    run_ranges(op_named("after"), 2);
    opscope_range_close(&range);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 2);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(process_and_reader_come_to_the_same_sum);
    RUN(an_extra_cost_is_decided_once_and_before_the_first_range);
    RUN(a_forked_child_has_its_parents_costs);
    RUN(a_threads_table_knows_the_cost_of_its_first_operator);
    RUN(ranges_without_weight_are_counted_as_in_no_cell);
    RUN(the_governor_counts_what_operators_cost);
    RUN(a_trial_sees_ranges_in_turns_and_leaves_nothing_behind);
    RUN(a_disturbed_round_says_nothing_and_is_not_recorded);
    RUN(a_trial_that_found_no_difference_says_nothing);
    RUN(a_trial_that_takes_long_comes_to_its_end);
    RUN(a_trial_does_not_end_because_its_thread_waits);
    RUN(a_callback_tries_nothing);
    RUN(a_range_that_outlives_the_trial_is_closed_in_peace);
    RUN(costs_grow_as_probes_say_that_the_program_is_dearer_than_the_loop);
    remove_directory();
    return 0;
}
