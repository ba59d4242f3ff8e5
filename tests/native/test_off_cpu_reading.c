/* tests/native/test_off_cpu_reading.c -- the kernel likes to stop a thread as it reads its CPU
 * clock. Such a stop is not of the range that begins then, and is of the one that ends. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/real_time.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/state.h"
#include "recorder/variance.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the driver's next window is days away */
static const uint64_t STOP_NS = 50000000;
enum { WEIGHT = 4, MS = 1000000 };

static bool stops_next; /* at the next reading */

/* In place of the C library's. */
static int stopping_clock(clockid_t id, struct timespec *now)
{
    const long result = syscall(SYS_clock_gettime, id, now);
    if (id == CLOCK_THREAD_CPUTIME_ID && stops_next) {
        stops_next = false;
        const struct timespec stop = {.tv_nsec = (long)STOP_NS};
        CHECK_EQUAL(nanosleep(&stop, NULL), 0);
    }
    return (int)result;
}

static void start(void)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .sampling_prob = 1.0, .window_ns = 10 * MS, .period_ns = NEVER_NS};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_named("first"), 1);
    CHECK_EQUAL(opscope_recorder_window_begin(WEIGHT), OPSCOPE_OK);
    const struct timespec gap = {.tv_nsec = MS};
    CHECK_EQUAL(nanosleep(&gap, NULL), 0);
    run_ranges(op_named("first"), 1); /* reads the clock for the first time */
}

static void pass_a_millisecond(void)
{
    const uint64_t end = opscope__monotonic_ns() + MS;
    while (opscope__monotonic_ns() < end) {
    }
}

/* The window ends: what an operator had in it, in stops. */
struct stops {
    double self, off_self, total, off_total;
};

static struct segment *segment;

static void end(void)
{
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    const struct opscope__variance_window window = {.work = 1e6};
    opscope__recorder_window_vary(&window); /* writes the off-CPU times */
    segment = stop_and_read();
}

static double in_stops(double weighted_ticks)
{
    const double per_second = (double)segment->header->ticks_per_second;
    return weighted_ticks / WEIGHT / per_second * 1e9 / (double)STOP_NS;
}

static struct stops of(const char *name)
{
    const struct totals totals = segment_sum_of(segment, name);
    struct stops stops = {.self = in_stops((double)totals.self_ticks),
                          .total = in_stops((double)totals.total_ticks)};
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        const opscope_off_cpu *entries = segment_items(chunk);
        for (uint32_t k = 0; chunk->kind == OPSCOPE_CHUNK_OFF_CPU && k < chunk->used; k++) {
            if ((uint32_t)entries[k].key == op_named(name)->id) {
                stops.off_self += in_stops(entries[k].self_ticks);
                stops.off_total += in_stops(entries[k].total_ticks);
            }
        }
    }
    return stops;
}

static void a_stop_as_a_range_begins_is_of_the_time_before_it(void)
{
    start();
    opscope_range around;
    opscope_range_open(&around, op_named("around"), NULL);
    pass_a_millisecond();
    stops_next = true;
    run_ranges(op_named("begins"), 1);
    CHECK(!stops_next);
    opscope_range_close(&around);
    end();
    CHECK(of("begins").self < 0.5);
    CHECK(of("begins").off_self < 0.5);
    CHECK(of("around").self > 0.99);
    CHECK(of("around").off_self > 0.95);
    segment_free(segment);
}

static void a_stop_as_a_long_range_ends_is_its_own(void)
{
    start();
    opscope_range around, range;
    opscope_range_open(&around, op_named("around"), NULL);
    opscope_range_open(&range, op_named("ends"), NULL);
    pass_a_millisecond();
    stops_next = true;
    opscope_range_close(&range);
    CHECK(!stops_next);
    run_ranges(op_named("next"), 1);
    opscope_range_close(&around);
    end();
    CHECK(of("ends").self > 0.99);
    CHECK(of("ends").off_self > 0.95);
    CHECK(of("around").self < 0.5);
    CHECK(of("around").off_self < 0.5);
    CHECK(of("next").self < 0.5);
    CHECK(of("next").off_self < 0.5);
    segment_free(segment);
}

static void a_stop_before_a_long_range_is_no_part_of_its_time(void)
{
    start();
    opscope_range around, range;
    opscope_range_open(&around, op_named("around"), NULL);
    pass_a_millisecond();
    stops_next = true;
    opscope_range_open(&range, op_named("after"), NULL);
    const uint64_t cpu_end = opscope__thread_cpu_ns() + MS;
    while (opscope__thread_cpu_ns() < cpu_end) {
    }
    opscope_range_close(&range);
    opscope_range_close(&around);
    end();
    /* Of its time, a millisecond was CPU time, whatever else stopped it. */
    CHECK(of("after").total - of("after").off_total > 0.9 * MS / (double)STOP_NS);
    segment_free(segment);
}

int main(void)
{
    opscope__clock_gettime = stopping_clock;
    make_directory();
    RUN(a_stop_as_a_range_begins_is_of_the_time_before_it);
    RUN(a_stop_as_a_long_range_ends_is_its_own);
    RUN(a_stop_before_a_long_range_is_no_part_of_its_time);
    remove_directory();
    return 0;
}
