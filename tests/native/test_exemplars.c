/* tests/native/test_exemplars.c -- slow ranges in a trace are kept in the segment, each of them
 * complete. */
#include <pthread.h>
#include <time.h>

#include "opscope/debug_info.h"
#include "ranges.h"
#include "read_segment.h"

enum {
    ROOM = (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) /
           sizeof(opscope_exemplar)
};

static void spin(uint64_t ns)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)(now.tv_sec - start.tv_sec) * 1000000000u + (uint64_t)now.tv_nsec <
             ns + (uint64_t)start.tv_nsec);
}

static void slow_range(const opscope_op *op, uint64_t ns)
{
    opscope_range range;
    opscope_range_open(&range, op, NULL);
    spin(ns);
    opscope_range_close(&range);
}

/* A range in the trace and the span with that number. */
static void slow_range_in_trace(const opscope_op *op, uint64_t ns, unsigned number)
{
    opscope_debug_info_guard trace, span;
    char text[64];
    snprintf(text, sizeof text, "%032x", number);
    CHECK_EQUAL(opscope_debug_info_push("trace_id", text, &trace), OPSCOPE_OK);
    snprintf(text, sizeof text, "%016x", number);
    CHECK_EQUAL(opscope_debug_info_push("span_id", text, &span), OPSCOPE_OK);
    slow_range(op, ns);
    opscope_debug_info_pop(&span);
    opscope_debug_info_pop(&trace);
}

static void check_whole(const opscope_exemplar *exemplar)
{
    uint64_t words[sizeof *exemplar / 8], check = OPSCOPE_EXEMPLAR_SEED;
    memcpy(words, exemplar, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0] - 1; i++) {
        check = (check ^ words[i]) * OPSCOPE_EXEMPLAR_FACTOR;
    }
    CHECK_EQUAL(exemplar->check, check);
}

/* The number of exemplars over all tables; checks that each is complete. */
static uint32_t exemplar_count(const struct segment *segment, uint32_t *last_number)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        if (chunk->kind != OPSCOPE_CHUNK_EXEMPLARS) {
            continue;
        }
        CHECK(chunk->used >= 1 && chunk->used <= ROOM);
        const opscope_exemplar *exemplars = segment_items(chunk);
        for (uint32_t at = 0; at < chunk->used; at++) {
            check_whole(&exemplars[at]);
            *last_number = (uint32_t)exemplars[at].span_id[7] | (uint32_t)exemplars[at].span_id[6]
                                                                    << 8;
            CHECK_EQUAL(exemplars[at].trace_id[15], exemplars[at].span_id[7]);
        }
        count += chunk->used;
    }
    return count;
}

static void a_slow_range_in_a_trace_is_kept_and_no_other(void)
{
    const opscope_op *op = op_named("work");
    uint32_t number = 0;
    start_recorder("");
    run_ranges(op, 1000);
    slow_range(op, 20000000);
    struct segment *segment = read_own();
    CHECK_EQUAL(exemplar_count(segment, &number), 0);
    segment_free(segment);
    run_ranges(op, 1000);
    slow_range_in_trace(op, 20000000, 7);
    segment = stop_and_read();
    CHECK_EQUAL(exemplar_count(segment, &number), 1);
    CHECK_EQUAL(number, 7);
    segment_free(segment);
}

static void *end_in_another_trace(void *user)
{
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_debug_info_push("trace_id", "000000000000000000000000000000ff", &guard),
                OPSCOPE_OK);
    opscope_range_end(user);
    opscope_debug_info_pop(&guard);
    return NULL;
}

static void an_async_range_is_in_the_trace_of_its_start(void)
{
    static const opscope_range_info info = {.sequence_nr = -1, .is_async = true};
    const opscope_op *op = op_named("work");
    opscope_debug_info_guard trace, span;
    uint32_t number = 0;
    pthread_t thread;
    start_recorder("");
    run_ranges(op, 1000);
    CHECK_EQUAL(opscope_debug_info_push("trace_id", "0000000000000000000000000000000c", &trace),
                OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("span_id", "000000000000000c", &span), OPSCOPE_OK);
    opscope_range *range = opscope_range_begin(op, &info);
    opscope_range *other = opscope_range_begin(op, &info);
    opscope_debug_info_pop(&span);
    opscope_debug_info_pop(&trace);
    spin(20000000);
    opscope_range_end(range);
    struct segment *segment = read_own();
    CHECK_EQUAL(exemplar_count(segment, &number), 1);
    CHECK_EQUAL(number, 12);
    segment_free(segment);
    CHECK_EQUAL(pthread_create(&thread, NULL, end_in_another_trace, other), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    segment = stop_and_read();
    CHECK_EQUAL(exemplar_count(segment, &number), 1); /* its table has no others to compare with */
    CHECK_EQUAL(number, 12);
    segment_free(segment);
}

static void each_segment_has_its_own(void)
{
    const opscope_op *op = op_named("work");
    uint32_t number = 0;
    slow_range_in_trace(op, 20000000, 8); /* there is no trace now */
    start_recorder("");
    run_ranges(op, 1000);
    slow_range_in_trace(op, 20000000, 9);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(exemplar_count(segment, &number), 1);
    CHECK_EQUAL(number, 9);
    segment_free(segment);
}

static void a_forked_child_has_its_own(void)
{
    const opscope_op *op = op_named("work");
    uint32_t number = 0;
    start_recorder("");
    run_ranges(op, 1000);
    slow_range_in_trace(op, 20000000, 10);
    pid_t child = fork();
    if (child == 0) {
        run_ranges(op, 1000);
        slow_range_in_trace(op, 20000000, 11);
        struct segment *segment = read_own();
        _exit(exemplar_count(segment, &number) == 1 && number == 11 ? 0 : 1);
    }
    CHECK(check_child(child));
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(exemplar_count(segment, &number), 1);
    CHECK_EQUAL(number, 10);
    segment_free(segment);
}

static void *run_many(void *user)
{
    const opscope_op *op = user;
    for (unsigned number = 1; number <= 2 * ROOM; number++) {
        run_ranges(op, 200);
        slow_range_in_trace(op, 5000, number);
    }
    return NULL;
}

static void threads_write_their_own_around_and_around(void)
{
    const opscope_op *op = op_named("work");
    pthread_t threads[3];
    uint32_t number = 0;
    start_recorder("");
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_many, (void *)(uintptr_t)op), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    struct segment *segment = stop_and_read();
    /* The number of ranges that were slow for their table depends on the machine; at least one
     * was. */
    CHECK(exemplar_count(segment, &number) >= 1);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(a_slow_range_in_a_trace_is_kept_and_no_other);
    RUN(an_async_range_is_in_the_trace_of_its_start);
    RUN(each_segment_has_its_own);
    RUN(a_forked_child_has_its_own);
    RUN(threads_write_their_own_around_and_around);
    remove_directory();
    return 0;
}
