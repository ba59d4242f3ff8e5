/* tests/native/test_taken_ranges.c -- ranges of the library's memory that other threads end leave
 * the thread that began them as if they had not been. */
#include <pthread.h>

#include "ranges.h"
#include "read_segment.h"
#include "recorder/state.h"

enum { MANY = 1000 }; /* more than a thread has room for at once */

static void start(void)
{
    empty_directory();
    const opscope_recorder_options options = {.directory = directory, .sampling_prob = 1.0};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

static void *end_range(void *range)
{
    opscope_range_end(range);
    return NULL;
}

static opscope_range *begin(const char *name)
{
    opscope_range *range = opscope_range_begin(op_named(name), NULL);
    CHECK(range != NULL);
    return range;
}

static void end_elsewhere(opscope_range *range)
{
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, end_range, range), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

static uint64_t calls_of(const struct segment *segment, const char *name)
{
    return segment_sum_of(segment, name).samples;
}

static void any_number_of_them_leaves_room(void)
{
    start();
    for (int i = 0; i < MANY; i++) {
        end_elsewhere(begin("taken"));
    }
    run_ranges(op_named("after"), 10);
    CHECK(opscope__hot.thread->recorder->top <= &opscope__hot.thread->recorder->frames[2]);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(calls_of(segment, "after"), 10);
    CHECK_EQUAL(calls_of(segment, "taken"), 0);
    CHECK_EQUAL(segment->header->dropped_count, MANY - 1); /* the last one is still there */
    segment_free(segment);
}

static void one_around_an_open_range_stays_until_that_ends(void)
{
    start();
    opscope_range *taken = begin("taken"), *open = begin("open");
    end_elsewhere(taken);
    opscope_range_end(begin("inside"));
    opscope_range_end(open);
    opscope_range_end(begin("after"));
    CHECK(opscope__hot.thread->recorder->top == &opscope__hot.thread->recorder->frames[1]);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(calls_of(segment, "inside"), 1);
    CHECK_EQUAL(calls_of(segment, "open"), 1);
    CHECK_EQUAL(calls_of(segment, "after"), 1);
    CHECK_EQUAL(segment->header->dropped_count, 1);
    segment_free(segment);
}

static void *begin_range(void *range)
{
    *(opscope_range **)range = begin("begun");
    return NULL;
}

static void the_thread_that_began_it_may_have_ended(void)
{
    start();
    for (int i = 0; i < 10; i++) {
        opscope_range *range = NULL;
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, begin_range, &range), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
        opscope_range_end(range);
    }
    opscope_range_end(begin("after"));
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(calls_of(segment, "after"), 1);
    segment_free(segment);
}

/* ---- two threads at once ------------------------------------------------------------------------ */

static opscope_range *handed; /* NULL: none; exchanged */

static void *end_handed(void *unused)
{
    for (int ended = 0; ended < MANY;) {
        opscope_range *range = __atomic_exchange_n(&handed, NULL, __ATOMIC_ACQ_REL);
        if (range != NULL) {
            opscope_range_end(range);
            ended++;
        }
    }
    return unused;
}

static void they_may_end_while_the_thread_runs_others(void)
{
    start();
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, end_handed, NULL), 0);
    uint64_t count = 0;
    for (int i = 0; i < MANY; i++) {
        opscope_range *range = begin("taken");
        while (__atomic_load_n(&handed, __ATOMIC_ACQUIRE) != NULL) {
        }
        __atomic_store_n(&handed, range, __ATOMIC_RELEASE);
        run_ranges(op_named("meanwhile"), 3);
        opscope_range_end(begin("own"));
        count += 3;
    }
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(calls_of(segment, "meanwhile"), count);
    CHECK_EQUAL(calls_of(segment, "own"), MANY);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(any_number_of_them_leaves_room);
    RUN(one_around_an_open_range_stays_until_that_ends);
    RUN(the_thread_that_began_it_may_have_ended);
    RUN(they_may_end_while_the_thread_runs_others);
    remove_directory();
    return 0;
}
