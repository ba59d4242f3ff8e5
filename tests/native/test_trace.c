/* tests/native/test_trace.c -- a trace has each range's operator, time and thread; names and labels
 * before it; tasks and memory; and nothing from before its start or after its end. */
#define _GNU_SOURCE
#include "opscope/debug_info.h"
#include "opscope/fork.h"
#include "opscope/memory.h"
#include "read_trace.h"

#include <pthread.h>

static void every_range_is_there_once(void)
{
    start_trace();
    run_ranges(op_named("a"), 1000);
    run_ranges(op_named("b"), 7);
    struct trace trace = stop_and_read_trace();
    uint64_t ended;
    CHECK_EQUAL(trace_ranges(&trace, "a"), 1000);
    CHECK_EQUAL(trace_ranges(&trace, "b"), 7);
    CHECK_EQUAL(trace_count(&trace, OPSCOPE_TRACE_RANGE, 0, &ended), 1007);
    CHECK_EQUAL(ended, 1007);
    CHECK_EQUAL(trace_count(&trace, OPSCOPE_TRACE_NAME, 0, &ended), 2);
    CHECK_EQUAL(trace_lost(&trace), 0);
    CHECK_EQUAL(trace.header->serial, 7);
    CHECK_EQUAL(trace.header->pid, getpid());
    trace_free(&trace);
}

static void what_ran_before_and_runs_after_is_not_in_it(void)
{
    run_ranges(op_named("before"), 10);
    start_trace();
    run_ranges(op_named("a"), 1);
    struct trace trace = stop_and_read_trace();
    CHECK(!opscope_has_callbacks());
    run_ranges(op_named("after"), 10);
    struct trace later = trace_read();
    CHECK(memcmp(trace.bytes, later.bytes, trace.size) == 0);
    CHECK_EQUAL(trace_op(&later, "before"), 0);
    CHECK_EQUAL(trace_op(&later, "after"), 0);
    trace_free(&later);
    trace_free(&trace);
}

static void nested_ranges_lie_within_one_another_in_time(void)
{
    opscope_range outer, inner;
    start_trace();
    opscope_range_open(&outer, op_named("outer"), NULL);
    opscope_range_open(&inner, op_named("inner"), NULL);
    opscope_range_close(&inner);
    opscope_range_close(&outer);
    struct trace trace = stop_and_read_trace();
    const opscope_trace_record *out = trace_range(&trace, "outer"),
                               *in = trace_range(&trace, "inner");
    CHECK(out < in && out->start_ticks < in->start_ticks);
    CHECK(in->start_ticks <= in->end_ticks && in->end_ticks <= out->end_ticks);
    CHECK(trace.header->anchor_ticks <= out->start_ticks);
    CHECK(out->end_ticks <= trace.header->end_anchor_ticks);
    trace_free(&trace);
}

static void ranges_cut_by_start_or_stop_are_not_made_whole(void)
{
    opscope_range before, across, within;
    opscope_range_open(&before, op_named("before"), NULL);
    start_trace();
    opscope_range_open(&across, op_named("across"), NULL);
    opscope_range_open(&within, op_named("within"), NULL);
    opscope_range_close(&within);
    struct trace trace = stop_and_read_trace();
    opscope_range_close(&across);
    opscope_range_close(&before);
    CHECK_EQUAL(trace_op(&trace, "before"), 0);
    CHECK_EQUAL(trace_range(&trace, "across")->end_ticks, 0);
    CHECK(trace_range(&trace, "within")->end_ticks != 0);
    trace_free(&trace);
}

static void a_range_says_its_phase_sequence_and_outcome(void)
{
    opscope_range_info forward = {.sequence_nr = 41},
                       backward = {.sequence_nr = 41, .forward_thread_id = 3};
    opscope_range range;
    start_trace();
    opscope_range_open(&range, op_named("forward"), &forward);
    opscope_range_fail(&range);
    opscope_range_close(&range);
    opscope_range_open(&range, op_of("backward", OPSCOPE_BACKWARD_FUNCTION, OPSCOPE_BACKWARD),
                       &backward);
    opscope_range_close(&range);
    opscope_range_open(&range, op_of("plain", OPSCOPE_USER_SCOPE, OPSCOPE_DATA), NULL);
    opscope_range_close(&range);
    struct trace trace = stop_and_read_trace();
    const opscope_trace_record *record = trace_range(&trace, "forward");
    CHECK_EQUAL(record_sequence_nr(record), 41);
    CHECK_EQUAL(record_forward_thread_id(record), 0);
    CHECK_EQUAL(record->flags, OPSCOPE_TRACE_FAILED);
    CHECK_EQUAL(record->phase, OPSCOPE_FORWARD);
    record = trace_range(&trace, "backward");
    CHECK_EQUAL(record_sequence_nr(record), 41);
    CHECK_EQUAL(record_forward_thread_id(record), 3);
    CHECK_EQUAL(record->flags, OPSCOPE_TRACE_BACKWARD);
    CHECK_EQUAL(record->phase, OPSCOPE_BACKWARD);
    record = trace_range(&trace, "plain");
    CHECK_EQUAL(record_sequence_nr(record), -1);
    CHECK_EQUAL(record->flags, 0);
    CHECK_EQUAL(record->phase, OPSCOPE_DATA);
    trace_free(&trace);
}

static void an_async_range_may_end_on_another_thread(void)
{
    opscope_range_info info = {.sequence_nr = -1, .is_async = true};
    start_trace();
    opscope_range *range = opscope_range_begin(op_named("async"), &info);
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, (void *(*)(void *))(void *)opscope_range_end, range),
                0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    struct trace trace = stop_and_read_trace();
    const opscope_trace_record *record = trace_range(&trace, "async");
    CHECK_EQUAL(record->flags, OPSCOPE_TRACE_ASYNC);
    CHECK(record->end_ticks > record->start_ticks);
    trace_free(&trace);
}

/* Checks the labels in force for the range of that name, in the LABELS record before it. */
static void check_labels(const struct trace *trace, const char *name, const char *text,
                         size_t bytes)
{
    const opscope_trace_record *labels = NULL;
    uint32_t op = trace_op(trace, name);
    for (struct record_at at = {0}; next_record(trace, &at);) {
        if (at.record->kind == OPSCOPE_TRACE_LABELS) {
            labels = at.record;
        } else if (at.record->kind == OPSCOPE_TRACE_RANGE && at.record->op == op) {
            CHECK_EQUAL(labels != NULL ? labels->more : 0, (bytes + 7) / 8);
            CHECK(bytes == 0 || memcmp(record_text(labels), text, bytes) == 0);
            return;
        }
    }
    CHECK(false);
}

static void ranges_stand_under_the_labels_they_ran_with(void)
{
    opscope_debug_info_guard guards[3];
    start_trace();
    run_ranges(op_named("none"), 1);
    CHECK_EQUAL(opscope_debug_info_push("model_id", "m", &guards[0]), OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("request", "17", &guards[1]), OPSCOPE_OK);
    run_ranges(op_named("two"), 3);
    CHECK_EQUAL(opscope_debug_info_push("model_id", "other", &guards[2]), OPSCOPE_OK);
    run_ranges(op_named("shadowed"), 1);
    opscope_debug_info_pop(&guards[2]);
    CHECK_EQUAL(opscope_debug_info_push("model_id", NULL, &guards[2]), OPSCOPE_OK);
    run_ranges(op_named("masked"), 1);
    opscope_debug_info_pop(&guards[2]);
    opscope_debug_info_pop(&guards[1]);
    run_ranges(op_named("one"), 1);
    opscope_debug_info_pop(&guards[0]);
    run_ranges(op_named("none again"), 1);
    struct trace trace = stop_and_read_trace();
    uint64_t ended;
    CHECK_EQUAL(trace_count(&trace, OPSCOPE_TRACE_LABELS, 0, &ended), 5);
    check_labels(&trace, "none", "", 0);
    check_labels(&trace, "two", "request\00017\0model_id\0m", 22);
    check_labels(&trace, "shadowed", "model_id\0other\0request\00017", 26);
    check_labels(&trace, "masked", "request\00017", 11);
    check_labels(&trace, "one", "model_id\0m", 11);
    check_labels(&trace, "none again", "", 0);
    trace_free(&trace);
}

static void labels_that_change_between_ranges_of_one_operator_are_seen(void)
{
    static const char *const values[] = {"a", "b", "a"};
    const opscope_op *op = op_named("relabelled");
    start_trace();
    run_ranges(op, 1);
    for (int i = 0; i < 3; i++) {
        opscope_debug_info_guard guard;
        CHECK_EQUAL(opscope_debug_info_push("k", values[i], &guard), OPSCOPE_OK);
        run_ranges(op, 1);
        opscope_debug_info_pop(&guard);
    }
    run_ranges(op, 1);
    struct trace trace = stop_and_read_trace();
    char seen[16] = "";
    char now = '-';
    for (struct record_at at = {0}; next_record(&trace, &at);) {
        if (at.record->kind == OPSCOPE_TRACE_LABELS) {
            now = at.record->more != 0 ? record_text(at.record)[2] : '-';
        } else if (at.record->kind == OPSCOPE_TRACE_RANGE) {
            seen[strlen(seen)] = now;
        }
    }
    CHECK_TEXT(seen, "-aba-");
    trace_free(&trace);
}

static int run_task(void *arg)
{
    run_ranges(arg, 5);
    return OPSCOPE_OK;
}

static void a_task_runs_where_and_when_it_says_and_says_who_forked_it(void)
{
    opscope_future *future;
    int result;
    start_trace();
    CHECK_EQUAL(opscope_fork(run_task, (void *)(uintptr_t)op_named("in task"), &future),
                OPSCOPE_OK);
    CHECK_EQUAL(opscope_wait(future, &result), OPSCOPE_OK);
    opscope_future_release(future);
    struct trace trace = stop_and_read_trace();
    const opscope_trace_record *fork = NULL, *task = NULL;
    for (struct record_at at = {0}; next_record(&trace, &at);) {
        fork = at.record->kind == OPSCOPE_TRACE_FORK ? at.record : fork;
        task = at.record->kind == OPSCOPE_TRACE_TASK ? at.record : task;
    }
    CHECK(fork != NULL && task != NULL && record_words(fork)[0] > 0);
    CHECK_EQUAL(record_words(fork)[0], record_words(task)[0]);
    CHECK(fork->start_ticks <= task->start_ticks && fork->end_ticks >= fork->start_ticks);
    CHECK(task->end_ticks > task->start_ticks);
    CHECK_EQUAL(trace_ranges(&trace, "in task"), 5);
    trace_free(&trace);
}

static void an_allocation_stands_within_its_range(void)
{
    opscope_range range;
    start_trace();
    opscope_range_open(&range, op_named("a"), NULL);
    opscope_note_allocation(12345);
    opscope_range_close(&range);
    struct trace trace = stop_and_read_trace();
    const opscope_trace_record *a = trace_range(&trace, "a"), *found = NULL;
    for (struct record_at at = {0}; next_record(&trace, &at);) {
        found = at.record->kind == OPSCOPE_TRACE_ALLOCATION ? at.record : found;
    }
    CHECK(found != NULL);
    CHECK_EQUAL(record_words(found)[0], 12345);
    CHECK(a->start_ticks <= found->start_ticks && found->start_ticks <= a->end_ticks);
    trace_free(&trace);
}

static void a_long_name_and_long_labels_are_cut_and_whole_to_read(void)
{
    static char name[5000], value[5000];
    opscope_debug_info_guard guards[20];
    memset(name, 'n', sizeof name - 1);
    memset(value, 'v', sizeof value - 1);
    for (int i = 0; i < 20; i++) {
        char key[8];
        snprintf(key, sizeof key, "key%d", i);
        CHECK_EQUAL(opscope_debug_info_push(key, value, &guards[i]), OPSCOPE_OK);
    }
    start_trace();
    run_ranges(op_named(name), 2);
    struct trace trace = stop_and_read_trace();
    for (int i = 20; i-- > 0;) {
        opscope_debug_info_pop(&guards[i]);
    }
    name[255] = '\0';
    CHECK_EQUAL(trace_ranges(&trace, name), 2);
    for (struct record_at at = {0}; next_record(&trace, &at);) {
        if (at.record->kind == OPSCOPE_TRACE_LABELS) {
            CHECK_EQUAL(at.record->more, 8 * (6 + 128) / 8);
            CHECK_TEXT(record_text(at.record), "key19");
        }
    }
    trace_free(&trace);
}

static void a_thread_that_records_nothing_is_not_there(void)
{
    bool was = opscope_recording_set(false);
    start_trace();
    run_ranges(op_named("silent"), 10);
    opscope_recording_set(was);
    run_ranges(op_named("heard"), 10);
    struct trace trace = stop_and_read_trace();
    CHECK_EQUAL(trace_op(&trace, "silent"), 0);
    CHECK_EQUAL(trace_ranges(&trace, "heard"), 10);
    trace_free(&trace);
}

static void what_a_range_costs_is_measured(void)
{
    start_trace();
    struct trace trace = stop_and_read_trace();
    uint64_t ended;
    CHECK(trace.header->record_cost_ps > 0);
    CHECK(trace.header->inside_cost_ps <= trace.header->record_cost_ps);
    CHECK_EQUAL(trace_count(&trace, OPSCOPE_TRACE_RANGE, 0, &ended), 0); /* and leaves nothing */
    trace_free(&trace);
}

int main(void)
{
    RUN(every_range_is_there_once);
    RUN(what_ran_before_and_runs_after_is_not_in_it);
    RUN(nested_ranges_lie_within_one_another_in_time);
    RUN(ranges_cut_by_start_or_stop_are_not_made_whole);
    RUN(a_range_says_its_phase_sequence_and_outcome);
    RUN(an_async_range_may_end_on_another_thread);
    RUN(ranges_stand_under_the_labels_they_ran_with);
    RUN(labels_that_change_between_ranges_of_one_operator_are_seen);
    RUN(a_task_runs_where_and_when_it_says_and_says_who_forked_it);
    RUN(an_allocation_stands_within_its_range);
    RUN(a_long_name_and_long_labels_are_cut_and_whole_to_read);
    RUN(a_thread_that_records_nothing_is_not_there);
    RUN(what_a_range_costs_is_measured);
    return 0;
}
