/* tests/native/test_off_cpu.c -- the main thread's off-CPU time within ranges of windows, against
 * clocks that are read just inside and just outside of these ranges. Another program on the same
 * processor makes it more, and is in the clocks as well. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/off_cpu.h"
#include "recorder/state.h"
#include "recorder/variance.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the driver's next window is days away */
enum { WEIGHT = 4, MS = 1000000 };

/* What recording and the reading of clocks take, and stops of less than half a millisecond that are
 * not counted. */
static const double SLACK_NS = 3e5;

static double ns_per_tick;

static void start(uint64_t window_ns)
{
    empty_directory();
    const opscope_recorder_options options = {.directory = directory,
                                              .sampling_prob = 1.0,
                                              .window_ns = window_ns,
                                              .period_ns = NEVER_NS};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_named("first"), 1);
    ns_per_tick =
        1e9 / (double)opscope__segment_header(&opscope__recorder.segment)->ticks_per_second;
}

static void sleep_ms(int64_t ms)
{
    const struct timespec time = {.tv_nsec = ms * MS};
    CHECK_EQUAL(nanosleep(&time, NULL), 0);
}

static void begin_window(void)
{
    CHECK_EQUAL(opscope_recorder_window_begin(WEIGHT), OPSCOPE_OK);
    sleep_ms(1); /* so that the next range reads the clock, as after the time between two windows */
    run_ranges(op_named("first"), 1);
}

static void end_window(void)
{
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
}

/* Off-CPU time so far, in ns. */
static double off_ns(void)
{
    return (double)opscope__ticks() * ns_per_tick - (double)opscope__thread_cpu_ns();
}

static void spin_ms(uint64_t ms)
{
    const uint64_t end = opscope__thread_cpu_ns() + ms * MS;
    while (opscope__thread_cpu_ns() < end) {
    }
}

struct of {
    double self_ns, total_ns;
};

static struct of of(const char *name)
{
    struct opscope__off_cpu_of found;
    for (size_t i = 0; opscope__off_cpu_read(opscope__recorder.segment.epoch, i, &found); i++) {
        if ((uint32_t)found.key == op_named(name)->id) {
            return (struct of){(double)found.self_ticks * ns_per_tick,
                               (double)found.total_ticks * ns_per_tick};
        }
    }
    return (struct of){0};
}

/* By the clocks just inside and just outside. */
static bool is_between(double inside_ns, double outside_ns, double weighted_ns)
{
    return weighted_ns >= WEIGHT * (inside_ns - SLACK_NS) &&
           weighted_ns <= WEIGHT * (outside_ns + SLACK_NS);
}

static void time_in_which_a_range_sleeps_is_its_own(void)
{
    start(10 * MS);
    begin_window();
    const opscope_op *op = op_named("sleeps");
    opscope_range range;
    const double outside = off_ns();
    opscope_range_open(&range, op, NULL);
    const double before = off_ns();
    sleep_ms(5);
    const double slept = off_ns() - before;
    opscope_range_close(&range);
    const double outside_slept = off_ns() - outside;
    end_window();
    CHECK(is_between(slept, outside_slept, of("sleeps").self_ns));
    CHECK(of("sleeps").self_ns == of("sleeps").total_ns);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void time_between_ranges_is_of_the_one_around_them(void)
{
    start(10 * MS);
    begin_window();
    const opscope_op *ops[] = {op_named("around"), op_named("inside"), op_named("short")};
    opscope_range around, range;
    const double outside = off_ns();
    opscope_range_open(&around, ops[0], NULL);
    const double begin = off_ns();
    opscope_range_open(&range, ops[1], NULL);
    const double inside = off_ns();
    sleep_ms(3);
    const double inside_end = off_ns();
    opscope_range_close(&range);
    const double own_begin = off_ns();
    sleep_ms(5);
    run_ranges(ops[2], 1);
    sleep_ms(4);
    const double end = off_ns();
    opscope_range_close(&around);
    const double outside_end = off_ns();
    end_window();
    CHECK(is_between(inside_end - inside, own_begin - begin, of("inside").self_ns));
    CHECK(is_between(end - own_begin, outside_end - outside - (inside_end - inside),
                     of("around").self_ns));
    CHECK(is_between(end - begin, outside_end - outside, of("around").total_ns));
    CHECK(of("short").total_ns == 0.0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* Works for a millisecond and more in a range inside, outlasts its window, and sleeps. */
static void outlast_the_window(const char *name, uint64_t inside_ms)
{
    begin_window();
    opscope_range range, inside;
    opscope_range_open(&range, op_named(name), NULL);
    if (inside_ms != 0) {
        opscope_range_open(&inside, op_named("inside"), NULL);
        spin_ms(inside_ms);
        opscope_range_close(&inside);
    }
    spin_ms(2);
    end_window();
    sleep_ms(5);
    opscope_range_close(&range);
}

static void where_a_self_time_is_unknown_its_part_is_unknown_too(void)
{
    start(10 * MS);
    outlast_the_window("calls others", 3);
    outlast_the_window("works itself", 0);
    CHECK(of("calls others").self_ns == 0.0);
    CHECK(of("calls others").total_ns >= WEIGHT * 5 * MS);
    CHECK(of("works itself").self_ns >= WEIGHT * 5 * MS);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "calls others").self_ticks, 0);
    CHECK(segment_sum_of(segment, "works itself").self_ticks > 0);
    segment_free(segment);
}

static void time_outside_of_all_ranges_is_of_none(void)
{
    start(10 * MS);
    begin_window();
    sleep_ms(5);
    const opscope_op *op = op_named("works");
    opscope_range range;
    const double before = off_ns();
    opscope_range_open(&range, op, NULL);
    spin_ms(3);
    opscope_range_close(&range);
    const double off = off_ns() - before;
    end_window();
    CHECK(of("works").self_ns <= WEIGHT * (off + SLACK_NS));
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static const opscope_off_cpu *entry_of(const struct segment *segment, const opscope_op *op)
{
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        const opscope_off_cpu *entries = segment_items(chunk);
        for (uint32_t k = 0; chunk->kind == OPSCOPE_CHUNK_OFF_CPU && k < chunk->used; k++) {
            if ((uint32_t)entries[k].key == op->id) {
                return &entries[k];
            }
        }
    }
    return NULL;
}

/* Around a range that sleeps and another outer range. */
static void run_outer(const opscope_op *around, const opscope_op *within)
{
    opscope_range outer, inside, inner;
    opscope_range_open(&outer, around, NULL);
    opscope_range_open(&inside, op_named("inside"), NULL);
    sleep_ms(5);
    opscope_range_close(&inside);
    sleep_ms(3);
    opscope_range_open(&inner, within, NULL);
    sleep_ms(2);
    opscope_range_close(&inner);
    opscope_range_close(&outer);
}

static void the_file_has_it_for_all_keys_and_for_outer_ranges_what_is_inside(void)
{
    start(10 * MS);
    const opscope_op *around = op_of("around", OPSCOPE_USER_SCOPE, OPSCOPE_FORWARD);
    const opscope_op *within = op_of("within", OPSCOPE_USER_SCOPE, OPSCOPE_FORWARD);
    begin_window();
    run_ranges(op_named("short"), 5);
    run_outer(around, within);
    run_outer(around, within);
    end_window();
    const struct opscope__variance_window window = {.work = 1e6};
    opscope__recorder_window_vary(&window);
    const double ticks = 1.0 / ns_per_tick;
    struct segment *segment = stop_and_read();
    const struct totals inside = segment_sum_of(segment, "inside");
    const opscope_off_cpu *of_inside = entry_of(segment, op_named("inside"));
    const opscope_off_cpu *of_short = entry_of(segment, op_named("short"));
    const opscope_off_cpu *of_around = entry_of(segment, around);
    CHECK(of_inside != NULL && of_short != NULL && of_around != NULL);
    CHECK_EQUAL(of_inside->count, 2);
    CHECK(of_inside->self_ticks >= 2 * WEIGHT * 5 * MS * ticks);
    CHECK(of_inside->self_ticks == of_inside->total_ticks);
    CHECK(of_inside->total_ticks <= (double)inside.total_ticks);
    CHECK(of_inside->variance > 0.0);
    CHECK_EQUAL(of_short->count, 0);
    CHECK(of_short->total_ticks == 0.0);
    CHECK(of_around->self_ticks == of_inside->total_ticks);
    CHECK(of_around->total_ticks == (double)inside.total_ticks);
    CHECK(of_around->exact_ticks == (double)segment_sum_of(segment, "within").total_ticks);
    CHECK(of_around->variance == 0.0);
    segment_free(segment);
}

static void ranges_of_a_warm_up_are_not_counted(void)
{
    start(10 * MS);
    begin_window();
    opscope__recorder_set_weights(0, 0);
    opscope_range range;
    opscope_range_open(&range, op_named("warms"), NULL);
    sleep_ms(5);
    opscope_range_close(&range);
    end_window();
    CHECK(of("warms").total_ns == 0.0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void *sleep_in_a_range(void *name)
{
    opscope_range range;
    opscope_range_open(&range, op_named(name), NULL);
    sleep_ms(5);
    opscope_range_close(&range);
    return NULL;
}

static void other_threads_have_no_such_time_and_other_tables(void)
{
    start(10 * MS);
    begin_window();
    for (int i = 0; i < 2; i++) { /* the second may take the table of the first */
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, sleep_in_a_range, "other"), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    }
    sleep_in_a_range("main");
    end_window();
    CHECK(of("other").total_ns == 0.0);
    CHECK(of("main").total_ns >= WEIGHT * 5 * MS);
    const uint64_t main_table = opscope__segment_header(&opscope__recorder.segment)->main_table - 1;
    struct segment *segment = stop_and_read();
    for (uint32_t i = 0; i < segment->header->chunk_count; i++) {
        const opscope_chunk *chunk = segment_chunk(segment, i);
        const opscope_cell *cells = segment_items(chunk);
        for (uint32_t k = 0; chunk->kind == OPSCOPE_CHUNK_CELLS && k < chunk->used; k++) {
            if (cells[k].sample_count != 0) {
                const bool is_other = (uint32_t)cells[k].key == op_named("other")->id;
                CHECK_EQUAL(chunk->table != main_table, is_other);
            }
        }
    }
    segment_free(segment);
}

static void a_forked_child_has_a_main_thread_of_its_own(void)
{
    start(10 * MS);
    begin_window();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        run_ranges(op_named("first"), 1); /* makes the segment */
        begin_window();
        sleep_in_a_range("child");
        end_window();
        _exit(of("child").self_ns >= WEIGHT * 5 * MS ? 0 : 1);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK(of("child").total_ns == 0.0);
    end_window();
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void with_every_range_recorded_the_clock_is_not_read(void)
{
    start(0);
    CHECK_EQUAL(opscope__recorder.long_ticks, UINT64_MAX);
    sleep_in_a_range("every");
    CHECK(of("every").total_ns == 0.0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void a_new_segment_begins_without_any(void)
{
    start(10 * MS);
    begin_window();
    sleep_in_a_range("earlier");
    end_window();
    CHECK(of("earlier").total_ns > 0.0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    start(10 * MS);
    CHECK(of("earlier").total_ns == 0.0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void beyond_the_limit_of_keys_nothing_is_known(void)
{
    enum { LIMIT = 256 };
    start(10 * MS);
    begin_window();
    const opscope_segment_header *header = opscope__segment_header(&opscope__recorder.segment);
    for (int i = 0; i <= LIMIT; i++) {
        char name[16];
        CHECK(header->main_table != 0);
        snprintf(name, sizeof name, "key %d", i);
        opscope_range range;
        opscope_range_open(&range, op_named(name), NULL);
        sleep_ms(1);
        opscope_range_close(&range);
    }
    CHECK_EQUAL(header->main_table, 0);
    end_window();
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

int main(void)
{
    make_directory();
    RUN(time_in_which_a_range_sleeps_is_its_own);
    RUN(time_between_ranges_is_of_the_one_around_them);
    RUN(where_a_self_time_is_unknown_its_part_is_unknown_too);
    RUN(time_outside_of_all_ranges_is_of_none);
    RUN(the_file_has_it_for_all_keys_and_for_outer_ranges_what_is_inside);
    RUN(ranges_of_a_warm_up_are_not_counted);
    RUN(other_threads_have_no_such_time_and_other_tables);
    RUN(a_forked_child_has_a_main_thread_of_its_own);
    RUN(with_every_range_recorded_the_clock_is_not_read);
    RUN(a_new_segment_begins_without_any);
    RUN(beyond_the_limit_of_keys_nothing_is_known);
    remove_directory();
    return 0;
}
