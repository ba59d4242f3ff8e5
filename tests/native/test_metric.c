/* tests/native/test_metric.c -- metrics lie in the segment while there is one, and lose nothing
 * when they move in and out. */
#include <pthread.h>

#include "opscope/metric.h"
#include "ranges.h"
#include "read_segment.h"

static opscope_metric counter, gauge, peak;

static void register_them(void)
{
    CHECK_EQUAL(opscope_metric_register(&counter, "test.counter", "a", OPSCOPE_METRIC_COUNTER), 0);
    CHECK_EQUAL(opscope_metric_register(&gauge, "test.gauge", "a", OPSCOPE_METRIC_GAUGE), 0);
    CHECK_EQUAL(opscope_metric_register(&peak, "test.peak", "a", OPSCOPE_METRIC_PEAK), 0);
}

static uint64_t in_segment(const struct segment *segment, const char *text, size_t bytes)
{
    const opscope_entry *entry = segment_find(segment, OPSCOPE_ENTRY_METRIC, text, bytes);
    CHECK(entry != NULL);
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        if (chunk->kind == OPSCOPE_CHUNK_METRICS) {
            CHECK(entry->id < chunk->used);
            return ((const uint64_t *)segment_items(chunk))[entry->id];
        }
    }
    CHECK(false);
    return 0;
}

#define IN_SEGMENT(segment, text) in_segment(segment, text, sizeof text)

static void check_read(uint64_t counted, uint64_t gauged, uint64_t peaked)
{
    CHECK_EQUAL(opscope_metric_read(&counter), counted);
    CHECK_EQUAL(opscope_metric_read(&gauge), gauged);
    CHECK_EQUAL(opscope_metric_read(&peak), peaked);
}

static void check_shown(struct segment *segment, uint64_t counted, uint64_t gauged, uint64_t peaked)
{
    CHECK_EQUAL(IN_SEGMENT(segment, "test.counter\0a"), counted);
    CHECK_EQUAL(IN_SEGMENT(segment, "test.gauge\0a"), gauged);
    CHECK_EQUAL(IN_SEGMENT(segment, "test.peak\0a"), peaked);
    segment_free(segment);
}

static void values_go_into_the_segment_and_come_back(void)
{
    opscope_metric_add(&counter, 5);
    opscope_metric_add(&gauge, 7);
    opscope_metric_raise(&peak, 9);
    check_read(5, 7, 9);
    start_recorder("");
    check_shown(read_own(), 0, 7, 9);
    check_read(5, 7, 9);
    opscope_metric_add(&counter, 10);
    CHECK_EQUAL(opscope_metric_add(&gauge, -(uint64_t)3), 4);
    opscope_metric_raise(&peak, 8);
    check_shown(read_own(), 10, 4, 9);
    check_read(15, 4, 9);
    opscope_metric_set(&peak, 4);
    check_shown(stop_and_read(), 10, 4, 4);
    check_read(15, 4, 4);
    opscope_metric_add(&counter, 1);
    opscope_metric_add(&gauge, 1);
    opscope_metric_raise(&peak, 5);
    check_read(16, 5, 5);
    start_recorder("");
    check_shown(stop_and_read(), 0, 5, 5);
    check_read(16, 5, 5);
}

static void one_registered_late_is_shown_too(void)
{
    static opscope_metric late;
    start_recorder("");
    CHECK_EQUAL(opscope_metric_register(&late, "test.counter", "late", OPSCOPE_METRIC_COUNTER), 0);
    opscope_metric_add(&late, 3);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(IN_SEGMENT(segment, "test.counter\0late"), 3);
    CHECK_EQUAL(segment_find(segment, OPSCOPE_ENTRY_METRIC, "test.counter\0late", 18)->detail,
                OPSCOPE_METRIC_COUNTER);
    segment_free(segment);
}

static void a_child_counts_anew_and_keeps_gauges(void)
{
    uint64_t counted = opscope_metric_read(&counter), gauged = opscope_metric_read(&gauge);
    start_recorder("");
    opscope_metric_add(&counter, 100);
    pid_t child = fork();
    opscope_metric_add(&counter, 1);
    opscope_metric_add(&gauge, 1);
    if (child == 0) {
        CHECK_EQUAL(opscope_metric_read(&counter), counted + 101);
        run_ranges(op_named("child"), 1);
        struct segment *segment = read_own();
        CHECK_EQUAL(IN_SEGMENT(segment, "test.counter\0a"), 0);
        CHECK_EQUAL(IN_SEGMENT(segment, "test.gauge\0a"), gauged + 1);
        segment_free(segment);
        opscope_metric_add(&counter, 1);
        CHECK_EQUAL(opscope_metric_read(&counter), counted + 102);
        CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
        CHECK_EQUAL(opscope_metric_read(&counter), counted + 102);
        _exit(0);
    }
    CHECK(check_child(child));
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(IN_SEGMENT(segment, "test.counter\0a"), 101);
    CHECK_EQUAL(IN_SEGMENT(segment, "test.gauge\0a"), gauged + 1);
    segment_free(segment);
}

static bool done;

static void *add_until_done(void *counted)
{
    while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
        opscope_metric_add(&counter, 1);
        opscope_metric_add(&gauge, 2);
        opscope_metric_add(&gauge, -(uint64_t)1);
        ++*(uint64_t *)counted;
    }
    return NULL;
}

static void nothing_is_lost_while_recorders_come_and_go(void)
{
    uint64_t counted[2] = {0}, before = opscope_metric_read(&counter);
    uint64_t gauged = opscope_metric_read(&gauge);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, add_until_done, &counted[i]), 0);
    }
    for (int i = 0; i < 50; i++) {
        start_recorder("");
        CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    }
    __atomic_store_n(&done, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    /* All except amounts that a thread added between the last move and the segment's end. */
    uint64_t all = counted[0] + counted[1];
    CHECK(opscope_metric_read(&counter) - before <= all);
    CHECK(opscope_metric_read(&counter) - before + 100 >= all);
    CHECK(opscope_metric_read(&gauge) - gauged + 200 >= all);
}

static void names_that_do_not_fit_are_refused(void)
{
    static opscope_metric never;
    char name[200];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = '\0';
    CHECK_EQUAL(opscope_metric_register(&never, "", "a", OPSCOPE_METRIC_GAUGE),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_metric_register(&never, "a", "", OPSCOPE_METRIC_GAUGE),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_metric_register(&never, name, "a", OPSCOPE_METRIC_GAUGE),
                OPSCOPE_ERR_INVALID);
}

static void beyond_256_they_count_without_being_shown(void)
{
    static opscope_metric many[300];
    start_recorder("");
    for (int i = 0; i < 300; i++) {
        CHECK_EQUAL(opscope_metric_register(&many[i], "test.many", "a", OPSCOPE_METRIC_COUNTER), 0);
        opscope_metric_add(&many[i], 1);
    }
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_entry_count(segment, OPSCOPE_ENTRY_METRIC), 256);
    segment_free(segment);
    for (int i = 0; i < 300; i++) {
        CHECK_EQUAL(opscope_metric_read(&many[i]), 1);
    }
}

int main(void)
{
    make_directory();
    register_them();
    RUN(values_go_into_the_segment_and_come_back);
    RUN(one_registered_late_is_shown_too);
    RUN(a_child_counts_anew_and_keeps_gauges);
    RUN(nothing_is_lost_while_recorders_come_and_go);
    RUN(names_that_do_not_fit_are_refused);
    RUN(beyond_256_they_count_without_being_shown);
    remove_directory();
    return 0;
}
