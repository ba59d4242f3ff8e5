/* tests/native/test_interruption.c -- the errors stated for self times when the kernel stops
 * threads, compared with the errors of the estimates of many simulated processes. */
#include <math.h>

#include "check.h"
#include "opscope/record.h"
#include "ranges.h"
#include "read_segment.h"
#include "record/random.h"
#include "recorder/variance.h"
#include "segment/table.h"

enum { MOST_OPS = 20, WINDOWS = 120, PROCESSES = 1000 };
static const double WEIGHT = 80.0, WINDOW = 3e6, STOP = 50e6; /* ticks of 1 ns */

static char memory[OPSCOPE_SEGMENT_HEADER_BYTES + 8 * OPSCOPE_SEGMENT_CHUNK_BYTES]
    __attribute__((aligned(4096)));
static opscope_cell *const cells = (opscope_cell *)(void *)(memory + OPSCOPE_SEGMENT_HEADER_BYTES +
                                                            OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
static opscope__segment segment;
static int op_count = MOST_OPS;

/* A segment in ordinary memory, with one table of op_count operators, all in phase 0. */
static void make(void)
{
    static uint32_t epoch;
    memset(memory, 0, sizeof memory);
    segment = (opscope__segment){.base = memory, .reserved_bytes = sizeof memory, .epoch = ++epoch};
    opscope_segment_header *header = opscope__segment_header(&segment);
    header->ticks_per_second = 1000000000;
    header->chunk_count = 1;
    *(opscope_chunk *)(void *)(memory + OPSCOPE_SEGMENT_HEADER_BYTES) =
        (opscope_chunk){.kind = OPSCOPE_CHUNK_CELLS, .used = (uint32_t)op_count};
    for (int i = 0; i < op_count; i++) {
        cells[i].key = 10 + (uint64_t)i;
    }
}

static const opscope_variance *variance_of(uint64_t key)
{
    const char *chunks = segment.base + OPSCOPE_SEGMENT_HEADER_BYTES;
    for (uint32_t i = 0; i < opscope__segment_header(&segment)->chunk_count; i++) {
        const opscope_chunk *chunk =
            (const void *)(chunks + (size_t)i * OPSCOPE_SEGMENT_CHUNK_BYTES);
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

static double error_of(uint64_t key)
{
    const opscope_variance *variance = variance_of(key);
    return variance != NULL ? sqrt(variance->self_ticks) : 0.0;
}

/* Of the sum over windows, without what may fall. */
static double summed_of(uint64_t key)
{
    const opscope_variance *variance = variance_of(key);
    return variance != NULL ? variance->self_ticks - variance->self_owed : 0.0;
}

/* The operators' shares of the CPU time: of twenty operators, 28 % to 1.4 %. */
static double share_of(int op)
{
    double sum = 0.0;
    for (int i = 0; i < op_count; i++) {
        sum += 1.0 / (1.0 + i);
    }
    return 1.0 / (1.0 + op) / sum;
}

static int random_op(opscope__random *random)
{
    double place = opscope__random_unit(random);
    int op = 0;
    while (op < op_count - 1 && place >= share_of(op)) {
        place -= share_of(op++);
    }
    return op;
}

static void see(int op, double ticks)
{
    cells[op].sample_count += 10;
    cells[op].weight += (uint64_t)(10.0 * WEIGHT * (double)ONE);
    cells[op].total_ticks += (uint64_t)(WEIGHT * ticks);
    cells[op].whole_ticks = cells[op].self_ticks = cells[op].total_ticks;
}

/* A window in which each operator runs for its share, give or take a tenth. `stopped_op`: -1 for
 * none. */
static void run_window(opscope__random *random, int stopped_op, double stopped)
{
    double busy = 0.0;
    for (int op = 0; op < op_count; op++) {
        const double vary = 0.9 + 0.2 * opscope__random_unit(random);
        const double ticks = share_of(op) * WINDOW * vary;
        busy += ticks;
        see(op, ticks + (op == stopped_op ? stopped : 0.0));
    }
    opscope__variance_window(
        &segment, &(struct opscope__variance_window){.work = WEIGHT * busy, .busy = WEIGHT * busy});
}

struct counts {
    double pairs, within_two, within_three; /* standard errors */
};

/* Processes whose windows are hit by a stop with that probability. */
static struct counts run_processes(opscope__random *random, double probability)
{
    struct counts counts = {0};
    for (int i = 0; i < PROCESSES; i++) {
        make();
        for (int k = 0; k < WINDOWS; k++) {
            const bool is_hit = opscope__random_unit(random) < probability;
            run_window(random, is_hit ? random_op(random) : -1, STOP);
        }
        for (int op = 0; op < op_count; op++) {
            const double true_ticks =
                share_of(op) * WEIGHT * WINDOWS * (WINDOW + probability * STOP);
            const double off = fabs((double)cells[op].self_ticks - true_ticks);
            const double error = error_of(10 + (uint64_t)op);
            counts.pairs += 1.0;
            counts.within_two += off <= 1.96 * error;
            counts.within_three += off <= 3.0 * error;
        }
    }
    return counts;
}

/* The operators of a process are hit by the same stops, so its pairs count as one. */
static double spread(double share)
{
    return 3.0 * sqrt(share * (1.0 - share) / PROCESSES);
}

static void intervals_hold_if_stops_are_frequent(void)
{
    opscope__random random;
    opscope__random_seed(&random, 3, 1);
    /* Sixty stops in windows for each process, so that each operator is hit in some. */
    op_count = 6;
    const struct counts counts = run_processes(&random, 0.5);
    op_count = MOST_OPS;
    const double share = counts.within_two / counts.pairs;
    CHECK(share >= 0.90 + spread(share) && share <= 0.99 - spread(share));
}

static void intervals_hold_if_most_operators_are_never_stopped_in_a_window(void)
{
    opscope__random random;
    opscope__random_seed(&random, 5, 1);
    /* Four stops in windows for each process, for twenty operators. */
    const struct counts counts = run_processes(&random, 1.0 / 30.0);
    CHECK(counts.within_two / counts.pairs >= 0.90);
    CHECK(counts.within_three / counts.pairs >= 0.95);
}

static void without_stops_only_own_deviations_count(void)
{
    opscope__random random;
    opscope__random_seed(&random, 7, 1);
    make();
    for (int k = 0; k < WINDOWS; k++) {
        run_window(&random, -1, 0.0);
    }
    for (int op = 0; op < op_count; op++) {
        /* A tenth, uniform, of WINDOWS windows. */
        const double expected = share_of(op) * WEIGHT * WINDOW * sqrt(WINDOWS / 300.0);
        CHECK(fabs(error_of(10 + (uint64_t)op) / expected - 1.0) < 0.3);
    }
}

/* The last operator waits for a disk in every fifth window. The others cannot tell its first wait
 * from a stop, but all later ones. */
static void an_operator_that_waits_by_itself_hardly_affects_the_others(void)
{
    opscope__random random;
    opscope__random_seed(&random, 9, 1);
    make();
    for (int k = 0; k < WINDOWS; k++) {
        run_window(&random, k % 5 == 2 ? op_count - 1 : -1, STOP);
    }
    for (int op = 0; op < op_count - 1; op++) {
        CHECK(error_of(10 + (uint64_t)op) < 1.2 * sqrt(share_of(op)) * WEIGHT * STOP);
    }
    CHECK(error_of(10 + (uint64_t)op_count - 1) > sqrt(0.5 * WINDOWS / 5) * WEIGHT * STOP);
}

/* An operator whose calls take long by themselves, without waiting. */
static void long_calls_are_no_stops(void)
{
    opscope__random random;
    opscope__random_seed(&random, 11, 1);
    make();
    for (int k = 0; k < WINDOWS; k++) {
        for (int op = 0; op < op_count; op++) {
            see(op, share_of(op) * WINDOW);
        }
        const double longer = k % 5 == 2 ? STOP : 0.0;
        see(0, longer);
        opscope__variance_window(
            &segment, &(struct opscope__variance_window){.work = WEIGHT * WINDOW,
                                                         .busy = WEIGHT * (WINDOW + longer)});
    }
    for (int op = 1; op < op_count; op++) {
        CHECK(error_of(10 + (uint64_t)op) < 1e-3 * (double)cells[op].self_ticks);
    }
}

static void variances_only_grow_and_those_of_a_phase_contain_the_stops(void)
{
    opscope__random random;
    opscope__random_seed(&random, 13, 1);
    make();
    double before[MOST_OPS] = {0.0};
    double squares = 0.0;
    for (int k = 0; k < WINDOWS; k++) {
        const bool is_hit = k % 10 == 5;
        run_window(&random, is_hit ? random_op(&random) : -1, STOP);
        squares += is_hit ? WEIGHT * STOP * WEIGHT * STOP : 0.0;
        for (int op = 0; op < op_count; op++) {
            const double now = summed_of(10 + (uint64_t)op);
            CHECK(now >= before[op] * (1.0 - 1e-9));
            before[op] = now;
        }
    }
    CHECK(fabs(error_of(0) / sqrt(squares) - 1.0) < 0.2);
    double sum = 0.0;
    for (int op = 0; op < op_count; op++) {
        const double error = error_of(10 + (uint64_t)op);
        sum += error * error;
    }
    /* Between that of all and twice as much. */
    CHECK(sum > squares * 0.9 && sum < squares * 2.0);
}

/* The first operator is an outer range, with all others inside it: its duration is exact, and its
 * self time is what their estimates leave. */
static void an_outer_range_has_the_error_of_the_ranges_inside(void)
{
    opscope__random random;
    opscope__random_seed(&random, 15, 1);
    make();
    double squares = 0.0;
    for (int k = 0; k < WINDOWS; k++) {
        double inside = 0.0;
        for (int op = 1; op < op_count; op++) {
            const bool is_hit = k % 10 == 5 && op == 1 + k / 10;
            const double ticks = share_of(op) * WINDOW + (is_hit ? STOP : 0.0);
            squares += is_hit ? WEIGHT * STOP * WEIGHT * STOP : 0.0;
            inside += ticks;
            see(op, ticks);
        }
        cells[0].sample_count += 100;
        cells[0].weight += 100 * ONE;
        cells[0].total_ticks += (uint64_t)(2.0 * WEIGHT * inside);
        cells[0].whole_ticks = cells[0].total_ticks;
        cells[0].self_ticks = cells[0].total_ticks / 2;
        const double busy = WEIGHT * WINDOW * (1.0 - share_of(0));
        opscope__variance_window(&segment,
                                 &(struct opscope__variance_window){.work = busy, .busy = busy});
    }
    CHECK(error_of(10) > 0.8 * sqrt(squares) && error_of(10) < 1.5 * sqrt(squares));
}

int main(void)
{
    RUN(intervals_hold_if_stops_are_frequent);
    RUN(intervals_hold_if_most_operators_are_never_stopped_in_a_window);
    RUN(without_stops_only_own_deviations_count);
    RUN(an_operator_that_waits_by_itself_hardly_affects_the_others);
    RUN(long_calls_are_no_stops);
    RUN(variances_only_grow_and_those_of_a_phase_contain_the_stops);
    RUN(an_outer_range_has_the_error_of_the_ranges_inside);
    return 0;
}
