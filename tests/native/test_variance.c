/* tests/native/test_variance.c -- the variances stated for windows, compared with the spread of the
 * estimates of many simulated processes. */
#include <math.h>

#include "check.h"
#include "opscope/record.h"
#include "ranges.h"
#include "read_segment.h"
#include "record/random.h"
#include "recorder/variance.h"
#include "segment/table.h"

enum { WINDOWS = 60, PROCESSES = 400 };

/* A segment in ordinary memory, with one table of two operators. */
struct made {
    opscope__segment segment;
    opscope_cell *cells;
    const opscope_variance *variances;
    const opscope_chunk *variance_chunk;
};

static char memory[OPSCOPE_SEGMENT_HEADER_BYTES + 8 * OPSCOPE_SEGMENT_CHUNK_BYTES]
    __attribute__((aligned(4096)));
static uint32_t epoch;

static opscope_chunk *chunk_at(uint32_t index)
{
    return (void *)(memory + OPSCOPE_SEGMENT_HEADER_BYTES +
                    (size_t)index * OPSCOPE_SEGMENT_CHUNK_BYTES);
}

static void make(struct made *made)
{
    memset(memory, 0, sizeof memory);
    *made = (struct made){
        .segment = {.base = memory, .reserved_bytes = sizeof memory, .epoch = ++epoch}};
    opscope_segment_header *header = opscope__segment_header(&made->segment);
    opscope_chunk *cells = chunk_at(0);
    header->chunk_count = 1;
    *cells = (opscope_chunk){.kind = OPSCOPE_CHUNK_CELLS, .used = 2};
    made->cells = (void *)((char *)cells + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
    made->cells[0].key = 10;
    made->cells[1].key = 11;
}

static void see(opscope_cell *cell, double count, double weight)
{
    cell->sample_count += (uint64_t)count;
    cell->weight += (uint64_t)(count * weight * (double)ONE);
    cell->total_ticks += (uint64_t)(100.0 * count * weight);
    cell->whole_ticks = cell->total_ticks;
    cell->self_ticks = cell->total_ticks / 2;
}

static const opscope_variance *variance_of(uint64_t key)
{
    for (uint32_t i = 0;
         i < opscope__segment_header(&(opscope__segment){.base = memory})->chunk_count; i++) {
        const opscope_chunk *chunk = chunk_at(i);
        const opscope_variance *entries =
            (const void *)((const char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
        for (uint32_t k = 0; chunk->kind == OPSCOPE_CHUNK_VARIANCES && k < chunk->used; k++) {
            if (entries[k].key == key) {
                return &entries[k];
            }
        }
    }
    return NULL;
}

static void close_window(opscope__segment *segment, double work, double owed)
{
    const struct opscope__variance_window window = {.work = work, .missing = owed};
    opscope__variance_window(segment, &window);
}

static double exponential(opscope__random *random, double mean)
{
    return -log(opscope__random_unit(random)) * mean;
}

/* Windows with a random amount of work. Operator 10 is proportional to the work of each window;
 * operator 11 runs in one window of three, three times as much. */
static void run(struct made *made, opscope__random *random, double noise)
{
    for (int i = 0; i < WINDOWS; i++) {
        const double work = 1000.0 * (0.5 + opscope__random_unit(random));
        const double share = 1.0 + noise * (2.0 * opscope__random_unit(random) - 1.0);
        see(&made->cells[0], round(work * share), 100.0);
        const bool is_of_other_kind = opscope__random_unit(random) < 1.0 / 3.0;
        see(&made->cells[1], is_of_other_kind ? round(3.0 * work) : 0.0, 100.0);
        close_window(&made->segment, 100.0 * work, 0.0);
    }
}

/* The spread over processes of the estimate's error, given the work, compared with the stated
 * variance: both for the same number of windows. */
static void stated_variances_are_those_of_the_estimates(void)
{
    opscope__random random;
    opscope__random_seed(&random, 7, 1);
    double stated[2] = {0.0}, squares[2] = {0.0};
    for (int i = 0; i < PROCESSES; i++) {
        struct made made;
        make(&made);
        double work = 0.0;
        for (int k = 0; k < WINDOWS; k++) {
            const double part = 1000.0 * (0.5 + opscope__random_unit(&random));
            const double share = 1.0 + 0.3 * (2.0 * opscope__random_unit(&random) - 1.0);
            see(&made.cells[0], round(part * share), 100.0);
            see(&made.cells[1], opscope__random_unit(&random) < 1.0 / 3.0 ? round(3.0 * part) : 0.0,
                100.0);
            close_window(&made.segment, 100.0 * part, 0.0);
            work += 100.0 * part;
        }
        for (uint64_t k = 0; k < 2; k++) {
            const double off = (double)made.cells[k].weight / (double)ONE - work;
            squares[k] += off * off;
            stated[k] += variance_of(10 + k)->calls;
        }
    }
    /* The windows that meet the operator, all of them or one of three, are few: 1 + 4 / (n - 1). */
    const double few[2] = {1.0 + 4.0 / (WINDOWS - 1.0), 1.0 + 4.0 / (WINDOWS / 3.0 - 1.0)};
    for (int k = 0; k < 2; k++) {
        /* The variance of a variance of 400 draws: 7 %; four times that. */
        CHECK(fabs(stated[k] / few[k] / squares[k] - 1.0) < 0.3);
    }
}

/* On a crowded processor, most windows have hardly any work, and a few have most of it. */
static void they_are_so_if_few_windows_have_most_of_the_work(void)
{
    opscope__random random;
    opscope__random_seed(&random, 17, 1);
    double stated = 0.0, squares = 0.0, covered = 0.0;
    for (int i = 0; i < PROCESSES; i++) {
        struct made made;
        make(&made);
        double work = 0.0;
        for (int k = 0; k < WINDOWS; k++) {
            const bool is_idle = opscope__random_unit(&random) < 0.8;
            const double part = is_idle ? 10.0 : 1000.0 * opscope__random_unit(&random);
            const double share = 0.5 + floor(3.0 * opscope__random_unit(&random)) / 2.0;
            see(&made.cells[0], round(part * share), 100.0);
            close_window(&made.segment, 100.0 * part, 0.0);
            work += 100.0 * part;
        }
        const double off = (double)made.cells[0].weight / (double)ONE - work;
        const double variance = variance_of(10)->calls;
        squares += off * off;
        stated += variance;
        covered += fabs(off) <= 1.96 * sqrt(variance);
    }
    CHECK(stated / squares > 1.0 && stated / squares < 2.5);
    CHECK(covered >= 0.92 * PROCESSES && covered <= 0.99 * PROCESSES);
}

static void intervals_hold_after_few_windows(void)
{
    enum { FEW = 5 };
    opscope__random random;
    opscope__random_seed(&random, 19, 1);
    double covered = 0.0;
    for (int i = 0; i < PROCESSES; i++) {
        struct made made;
        make(&made);
        double work = 0.0;
        for (int k = 0; k < FEW; k++) {
            const double part = 1000.0 * (0.5 + opscope__random_unit(&random));
            const double share = 1.0 + 0.3 * (2.0 * opscope__random_unit(&random) - 1.0);
            see(&made.cells[0], round(part * share), 100.0);
            close_window(&made.segment, 100.0 * part, 0.0);
            work += 100.0 * part;
        }
        const double off = (double)made.cells[0].weight / (double)ONE - work;
        covered += fabs(off) <= 1.96 * sqrt(variance_of(10)->calls);
    }
    CHECK(covered >= 0.92 * PROCESSES && covered <= 0.99 * PROCESSES);
}

/* An operator that runs for 4 ms of each `period_ms`: a window of 2 ms meets all, part or nothing
 * of that. Gives the share of processes in which a window met it and the interval holds. */
static double covered_of_rare(opscope__random *random, double period_ms)
{
    enum { MANY_WINDOWS = 120 };
    const double burst_ms = 4.0, window_ms = 2.0, calls_per_ms = 1000.0;
    double covered = 0.0, met = 0.0;
    for (int i = 0; i < PROCESSES; i++) {
        struct made made;
        make(&made);
        for (int k = 0; k < MANY_WINDOWS; k++) {
            const double start_ms = opscope__random_unit(random) * period_ms - window_ms;
            const double overlap_ms = fmin(start_ms + window_ms, burst_ms) - fmax(start_ms, 0.0);
            see(&made.cells[0], round(fmax(overlap_ms, 0.0) * calls_per_ms), 100.0);
            see(&made.cells[1], 1000.0, 100.0);
            close_window(&made.segment, 2e6, 0.0);
        }
        const double true_calls =
            MANY_WINDOWS * 100.0 * window_ms * calls_per_ms * burst_ms / period_ms;
        const double off = (double)made.cells[0].weight / (double)ONE - true_calls;
        const opscope_variance *variance = variance_of(10);
        met += variance != NULL;
        covered += variance != NULL && fabs(off) <= 1.96 * sqrt(variance->calls);
    }
    CHECK(met > 0.5 * PROCESSES);
    return covered / met;
}

static void intervals_hold_for_what_few_windows_meet(void)
{
    opscope__random random;
    opscope__random_seed(&random, 23, 1);
    const double period_ms[] = {600.0, 400.0, 200.0, 100.0, 30.0};
    for (size_t i = 0; i < sizeof period_ms / sizeof *period_ms; i++) {
        const double covered = covered_of_rare(&random, period_ms[i]);
        CHECK(covered >= 0.92 && covered <= 0.995);
    }
}

/* The first two windows have ten times the weight of later ones, and of two little is known. That
 * does not hide the error of later ones. */
static void the_variance_of_an_increase_has_all_its_windows(void)
{
    opscope__random random;
    opscope__random_seed(&random, 29, 1);
    double covered = 0.0;
    for (int i = 0; i < PROCESSES; i++) {
        struct made made;
        make(&made);
        see(&made.cells[0], 50.0, 1000.0);
        close_window(&made.segment, 1e6, 0.0);
        see(&made.cells[0], 150.0, 1000.0);
        close_window(&made.segment, 1e6, 0.0);
        const opscope_variance then = *variance_of(10);
        const uint64_t before = made.cells[0].weight;
        for (int k = 0; k < WINDOWS; k++) {
            const bool has_many = opscope__random_unit(&random) < 0.5;
            see(&made.cells[0], has_many ? 150.0 : 50.0, 100.0);
            close_window(&made.segment, 1e5, 0.0);
        }
        const opscope_variance now = *variance_of(10);
        const double sum = now.calls - now.calls_owed - (then.calls - then.calls_owed);
        const double variance = fmax(0.0, sum) + now.calls_owed + then.calls_owed;
        const double off = (double)(made.cells[0].weight - before) / (double)ONE - WINDOWS * 1e4;
        covered += fabs(off) <= 1.96 * sqrt(variance);
    }
    CHECK(covered >= 0.92 * PROCESSES);
}

static void what_every_window_holds_alike_is_certain(void)
{
    opscope__random random;
    opscope__random_seed(&random, 3, 1);
    struct made made;
    make(&made);
    run(&made, &random, 0.0);
    const opscope_variance *alike = variance_of(10), *seldom = variance_of(11);
    CHECK_EQUAL(alike->window_count, WINDOWS);
    CHECK(seldom->window_count < WINDOWS);
    const double calls = (double)made.cells[0].weight / (double)ONE;
    CHECK(sqrt(alike->calls) < 0.001 * calls);
    CHECK(sqrt(seldom->calls) > 0.05 * calls);
    /* A call takes 100 ticks, half of them its own. */
    CHECK(fabs(seldom->total_ticks / (1e4 * seldom->calls) - 1.0) < 0.01);
    CHECK(fabs(seldom->self_ticks / (2.5e3 * seldom->calls) - 1.0) < 0.01);
}

static void the_phase_has_the_sum_of_its_operators(void)
{
    opscope__random random;
    opscope__random_seed(&random, 5, 1);
    struct made made;
    make(&made);
    run(&made, &random, 0.0);
    const opscope_variance *phase = variance_of(0), *seldom = variance_of(11);
    CHECK(phase != NULL);
    /* The other operator is exact, so their common variance is that of the one, but more windows
     * meet the two: 1 + 4 / (n - 1), with contributions of 1 and 4 or, of the one, of 0 and 3. */
    const double of_both = 1.0 + 4.0 / (WINDOWS * (2.0 * 2.0) / 6.0 - 1.0);
    const double of_one = 1.0 + 4.0 / (WINDOWS * (1.0 * 1.0) / 3.0 - 1.0);
    CHECK(fabs(phase->calls / of_both * of_one / seldom->calls - 1.0) < 0.05);
}

static void the_squares_of_the_windows_calls_are_summed(void)
{
    const double samples[3][2] = {{50.0, 25.0}, {0.0, 25.0}, {150.0, 0.0}};
    struct made made;
    make(&made);
    for (int i = 0; i < 3; i++) {
        see(&made.cells[0], samples[i][0], 2.0);
        see(&made.cells[1], samples[i][1], 2.0);
        close_window(&made.segment, 1e5, 0.0);
    }
    CHECK(variance_of(10)->calls_squared == 1e4 + 9e4);
    CHECK(variance_of(11)->calls_squared == 2.5e3 + 2.5e3);
    CHECK(variance_of(0)->calls_squared == 150.0 * 150.0 + 50.0 * 50.0 + 300.0 * 300.0);
}

/* 10,000 calls for 1e5 ns of work in each window, and no other error than what is owed. */
static double variance_with(double owed_at_first, double owed, double owed_at_last)
{
    struct made made;
    make(&made);
    for (int i = 0; i < WINDOWS; i++) {
        see(&made.cells[0], 100.0, 100.0);
        close_window(&made.segment, 1e5,
                     i == 3             ? owed_at_first
                     : i == WINDOWS - 1 ? owed_at_last
                                        : owed);
    }
    const opscope_variance *variance = variance_of(10);
    /* All of it is owed. */
    CHECK(fabs(variance->calls_owed - variance->calls) <= 1e-9 * variance->calls);
    /* A call takes 100 ticks, half of them its own. */
    CHECK(fabs(variance->self_owed - 2.5e3 * variance->calls_owed) <= 1e-6 * variance->self_owed);
    return variance->calls;
}

static void work_that_windows_have_not_stood_for_is_an_error(void)
{
    CHECK(fabs(variance_with(1e6, 1e6, 1e6) / (1e5 * 1e5) - 1.0) < 1e-9);
    /* What was owed once, long ago, hardly matters. */
    CHECK(fabs(variance_with(10e6, 1e6, 1e6) / (1e5 * 1e5) - 1.0) < 0.05);
    CHECK(fabs(variance_with(0.0, 1e6, 0.0) / (1e5 * 1e5) - 0.875) < 0.01);
}

static void an_interval_contains_what_is_owed_now(void)
{
    const double half = 1.96 * sqrt(variance_with(0.0, 0.0, -20e6));
    CHECK(fabs(half / 2e6 - 1.0) < 1e-9);
}

/* A large window with both operators, then small ones with one of them. */
static void what_one_window_met_may_as_well_be_missing(void)
{
    struct made made;
    make(&made);
    for (int i = 0; i < 5; i++) {
        see(&made.cells[0], i == 0 ? 100.0 : 1.0, 10.0);
        see(&made.cells[1], i == 0 ? 3.0 : 0.0, 10.0);
        close_window(&made.segment, i == 0 ? 1e5 : 1e3, 0.0);
        CHECK(sqrt(variance_of(11)->calls) > 0.9 * 30.0);
    }
    for (int i = 0; i < 5; i++) {
        see(&made.cells[0], 100.0, 10.0);
        see(&made.cells[1], 3.0, 10.0);
        close_window(&made.segment, 1e5, 0.0);
    }
    CHECK(sqrt(variance_of(11)->calls) < 2.0 * 30.0); /* of 180 */
}

static void what_is_recorded_always_is_exact(void)
{
    struct made made;
    make(&made);
    for (int i = 0; i < WINDOWS; i++) {
        see(&made.cells[0], i % 7, 1.0);
        see(&made.cells[1], i % 5, 100.0);
        close_window(&made.segment, 1e5, 0.0);
    }
    CHECK(variance_of(10)->calls == 0.0);
    CHECK(variance_of(10)->total_ticks == 0.0);
    CHECK(variance_of(11)->calls > 0.0);
}

/* Their sums do; the parts that are stated apart do not. */
static void variances_only_grow(void)
{
    opscope__random random;
    opscope__random_seed(&random, 9, 1);
    struct made made;
    make(&made);
    double before = 0.0;
    for (int i = 0; i < WINDOWS; i++) {
        see(&made.cells[0], floor(exponential(&random, 50.0)), 100.0);
        close_window(&made.segment, exponential(&random, 1e5), 0.0);
        const opscope_variance *now = variance_of(10);
        const double sum = now != NULL ? now->calls - now->calls_owed : 0.0;
        CHECK(sum >= before * (1.0 - 1e-9));
        before = sum;
    }
    CHECK(before > 0.0);
}

static void a_window_without_work_changes_no_slope(void)
{
    struct made made;
    make(&made);
    for (int i = 0; i < 10; i++) {
        close_window(&made.segment, 0.0, 0.0);
    }
    for (int i = 0; i < WINDOWS; i++) {
        see(&made.cells[0], 1000.0, 100.0);
        close_window(&made.segment, 1e5, 0.0);
        close_window(&made.segment, 0.0, 0.0);
    }
    CHECK(variance_of(10)->calls == 0.0);
}

/* Readers extrapolate the self time too, and must not do so to its variance again. */
static void ranges_with_an_unknown_self_time_are_in_its_variance(void)
{
    opscope__random random;
    struct made made;
    double stated[2];
    for (int is_unknown = 0; is_unknown < 2; is_unknown++) {
        opscope__random_seed(&random, 11, 1);
        make(&made);
        for (int i = 0; i < WINDOWS; i++) {
            see(&made.cells[0], floor(exponential(&random, 50.0)), 100.0);
            if (is_unknown) {
                made.cells[0].whole_ticks = made.cells[0].total_ticks / 4;
                made.cells[0].self_ticks = made.cells[0].total_ticks / 8;
            }
            close_window(&made.segment, 1e5, 0.0);
        }
        stated[is_unknown] = variance_of(10)->self_ticks;
    }
    CHECK(stated[0] > 0.0);
    CHECK(fabs(stated[1] / stated[0] - 1.0) < 1e-6);
}

int main(void)
{
    RUN(stated_variances_are_those_of_the_estimates);
    RUN(they_are_so_if_few_windows_have_most_of_the_work);
    RUN(intervals_hold_after_few_windows);
    RUN(intervals_hold_for_what_few_windows_meet);
    RUN(the_variance_of_an_increase_has_all_its_windows);
    RUN(what_every_window_holds_alike_is_certain);
    RUN(the_phase_has_the_sum_of_its_operators);
    RUN(the_squares_of_the_windows_calls_are_summed);
    RUN(work_that_windows_have_not_stood_for_is_an_error);
    RUN(an_interval_contains_what_is_owed_now);
    RUN(what_one_window_met_may_as_well_be_missing);
    RUN(what_is_recorded_always_is_exact);
    RUN(variances_only_grow);
    RUN(a_window_without_work_changes_no_slope);
    RUN(ranges_with_an_unknown_self_time_are_in_its_variance);
    return 0;
}
