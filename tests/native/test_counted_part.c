/* tests/native/test_counted_part.c -- the counted part of a window, while a quota stops the program
 * and the driver. */
#include <math.h>

#include "check.h"
#include "recorder/counted_part.h"
#include "recorder/gap.h"

enum { MS = 1000000, PERIOD_NS = 250 * MS, QUOTA_NS = 100 * MS, PARTS = 5 };

static void a_part_ends_in_time_where_nothing_stops_it(void)
{
    for (int has_quota = 0; has_quota < 2; has_quota++) {
        opscope__counted_part counted;
        uint64_t now_ns = 7 * MS, due_ns;
        unsigned timers = 1;
        due_ns = opscope__counted_part_begin(&counted, 24 * MS, PERIOD_NS, has_quota, now_ns);
        while (due_ns != 0) {
            now_ns = due_ns;
            due_ns = opscope__counted_part_go_on(&counted, now_ns);
            timers += due_ns != 0;
        }
        CHECK_EQUAL(now_ns, 31 * MS);
        CHECK_EQUAL(timers, has_quota ? 5 : 1);
    }
}

/* Other processes make timers late as well: the program may run meanwhile. */
static void a_part_that_waits_for_other_processes_is_no_longer(void)
{
    opscope__counted_part counted;
    CHECK_EQUAL(opscope__counted_part_begin(&counted, 20 * MS, PERIOD_NS, true, 0), 5 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 22 * MS), 0);
    CHECK_EQUAL(opscope__counted_part_begin(&counted, 30 * MS, PERIOD_NS, false, 0), 30 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 80 * MS), 0); /* no quota is known */
}

static void a_short_part_ends_with_a_stop(void)
{
    opscope__counted_part counted;
    CHECK_EQUAL(opscope__counted_part_begin(&counted, 19 * MS, PERIOD_NS, true, 0), 19 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 70 * MS), 0);
}

static void a_stop_is_no_part_of_its_length(void)
{
    opscope__counted_part counted;
    CHECK_EQUAL(opscope__counted_part_begin(&counted, 20 * MS, PERIOD_NS, true, 0), 5 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 5 * MS), 10 * MS);
    /* 50 ms late, and stopped since the middle of the step. */
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 60 * MS), 65 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 65 * MS), 70 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 70 * MS), 72 * MS + MS / 2);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 73 * MS), 0);
}

static void stops_move_the_end_by_a_part_of_the_period_at_most(void)
{
    opscope__counted_part counted;
    CHECK_EQUAL(opscope__counted_part_begin(&counted, 20 * MS, PERIOD_NS, true, 0), 5 * MS);
    CHECK_EQUAL(opscope__counted_part_go_on(&counted, 205 * MS), 0);
    CHECK_EQUAL(counted.end_ns, 20 * MS + (uint64_t)(0.65 * PERIOD_NS));
    CHECK_EQUAL(counted.allowed_ns, 0);
}

/* When a driver wakes up whose timer is set to `due_ns`: a quota lets it run for the first `run_ns`
 * of each 100 ms. */
static uint64_t woken(uint64_t due_ns, uint64_t run_ns)
{
    const uint64_t turn_ns = due_ns % QUOTA_NS;
    return turn_ns < run_ns ? due_ns : due_ns - turn_ns + QUOTA_NS;
}

/* Adds the program's time from `from` to `to`, by fifths of its turns. */
static void add(double *parts, uint64_t from, uint64_t to, uint64_t run_ns)
{
    const uint64_t part_ns = run_ns / PARTS;
    for (uint64_t turn = from / QUOTA_NS * QUOTA_NS; turn < to; turn += QUOTA_NS) {
        for (uint64_t i = 0; i < PARTS; i++) {
            const uint64_t begins = turn + i * part_ns, ends = begins + part_ns;
            const uint64_t a = from > begins ? from : begins, b = to < ends ? to : ends;
            parts[i] += b > a ? (double)(b - a) : 0.0;
        }
    }
}

/* The share of the counted time in each fifth of a turn, in windows of `length_ns` after 2 ms. */
static void shares_of_turns(double *parts, uint64_t run_ns, uint64_t length_ns, bool goes_on)
{
    enum { WINDOWS = 5000, WARM_UP_NS = 2 * MS };
    opscope__gap gap = {0};
    opscope__gap_begin(&gap, PERIOD_NS, 0);
    uint64_t now_ns = 0;
    for (int i = 0; i < WINDOWS; i++) {
        uint64_t due_ns = opscope__gap_draw(&gap, now_ns, 31);
        do {
            now_ns = woken(due_ns, run_ns);
            due_ns = opscope__gap_again(&gap, now_ns);
        } while (due_ns != 0);
        const uint64_t start_ns = now_ns = woken(now_ns + WARM_UP_NS, run_ns);
        opscope__counted_part counted;
        due_ns = opscope__counted_part_begin(&counted, (double)length_ns, PERIOD_NS,
                                             goes_on && opscope__gap_has_quota(&gap), now_ns);
        while (due_ns != 0) {
            now_ns = woken(due_ns, run_ns);
            due_ns = opscope__counted_part_go_on(&counted, now_ns);
        }
        add(parts, start_ns, now_ns, run_ns);
        opscope__gap_note(&gap, (double)run_ns, (double)QUOTA_NS);
    }
    double all = 0.0;
    for (int i = 0; i < PARTS; i++) {
        all += parts[i];
    }
    for (int i = 0; i < PARTS; i++) {
        parts[i] /= all;
    }
}

static void windows_meet_each_part_of_a_turn_alike(void)
{
    static const uint64_t RUN_NS[] = {25 * MS, 50 * MS};
    for (size_t i = 0; i < sizeof RUN_NS / sizeof RUN_NS[0]; i++) {
        double ending[PARTS] = {0}, going_on[PARTS] = {0};
        shares_of_turns(ending, RUN_NS[i], 50 * (uint64_t)MS, false);
        CHECK(ending[0] < 0.1 && ending[PARTS - 1] > 0.28);
        shares_of_turns(going_on, RUN_NS[i], 50 * (uint64_t)MS, true);
        for (int k = 0; k < PARTS; k++) {
            CHECK(fabs(going_on[k] - 1.0 / PARTS) < 0.01);
        }
    }
}

int main(void)
{
    RUN(a_part_ends_in_time_where_nothing_stops_it);
    RUN(a_part_that_waits_for_other_processes_is_no_longer);
    RUN(a_short_part_ends_with_a_stop);
    RUN(a_stop_is_no_part_of_its_length);
    RUN(stops_move_the_end_by_a_part_of_the_period_at_most);
    RUN(windows_meet_each_part_of_a_turn_alike);
    return 0;
}
