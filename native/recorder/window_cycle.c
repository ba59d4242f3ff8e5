/* recorder/window_cycle.c -- the sequence of windows, as steps; see recorder/window_cycle.h.
 *
 * recorder/gap.c draws when a window opens. It has four parts:
 *
 *   few       ranges are only counted: recorder/window_compare.h
 *   warm-up   ranges are recorded with weight 0: the code and data of recording get into the
 *             caches, and the recorder learns which ranges enclose later ones: recorder/warm_up.h
 *   counted   ranges that start now have the window's weight
 *   tail      ranges have weight 0 again; those that started before and are still open get a
 *             little CPU time to end, so that their self time is known
 *
 * recorder/window_length.c computes how long the counted part is, recorder/counted_part.c when it
 * ends if the program is stopped meanwhile, recorder/window_books.c the weights. This file measures
 * its inputs, CPU time and cost of recording at the ends of the counted part, so that late steps
 * change weights but do not bias estimates. recorder/variance.c computes the uncertainty of the
 * estimates.
 */
#include "recorder/window_cycle.h"

#include <math.h>

#include "base/clock.h"
#include "record/thread.h"
#include "recorder/cost.h"
#include "recorder/counted_part.h"
#include "recorder/gap.h"
#include "recorder/moment.h"
#include "recorder/state.h"
#include "recorder/variance.h"
#include "recorder/warm_up.h"
#include "recorder/window_books.h"
#include "recorder/window_compare.h"
#include "recorder/window_length.h"

/* Counted ranges that are open at a window's end get some time to end, in steps that double: the
 * first is this fraction of the window's length. */
enum { TAIL_PART = 4 };
/* After steps of up to the window's length, the tail goes on only for threads that wait for a
 * processor: while all threads together have used less CPU time in it than this many lengths, which
 * is what the tail of a program without waiting lasts, and for at most this part of the period, so
 * that it rarely delays the next window. */
static const double TAIL_CPU = 1.75;
static const double TAIL_LIMIT_PART = 0.2;
/* Ranges are counted for this many times as long as recorded, which costs little; for less if the
 * period is short. */
static const double FEW_PART = 4.0, FEW_LEAST_PART = 1.5, FEW_LIMIT_PART = 0.125;

static uint64_t units(double weight)
{
    return (uint64_t)llround(weight * (double)OPSCOPE__WEIGHT_ONE);
}

enum part { BETWEEN, FEW_WARM_UP, FEW, WARM_UP, COUNTED, TAIL };

/* Owner: the driver (recorder/window.c), one thread at a time. */
static struct cycle {
    enum part part;
    uint64_t due_ns;                   /* end of the current part */
    double planned_on, planned_period; /* ns */
    opscope__window_length length;     /* of the counted part */
    opscope__gap gap;                  /* before the next window */
    struct opscope__moment last; /* the end of the last counted part, or the plan's beginning */
    opscope__warm_up warm_up;
    opscope__counted_part counted;
    uint64_t number;  /* of windows so far */
    bool is_compared; /* the cost of recording, in this window */
    opscope__window_compare compare;
    struct opscope__moment start, stop; /* of the counted part */
    struct opscope__moment tail;        /* the last step of the tail */
    struct opscope__window_weights weights;
    uint64_t tail_step_ns;
    uint64_t drivers_ns; /* CPU time of all drivers at the end of the last window */
    opscope__window_books books;
} cycle;

/* The CPU time of the threads whose ranges the window recorded, times its weight, in ns. */
static double busy_ns(const struct opscope__moment *until)
{
    const struct opscope__cpu_times *from = &cycle.start.cpu;
    const double rest = (double)(int64_t)(until->cpu.rest_ns - from->rest_ns);
    return cycle.weights.known * opscope__since(from->known_ns, until->cpu.known_ns) +
           (until->cpu.has_new ? cycle.weights.rest * fmax(0.0, rest) : 0.0);
}

/* The CPU time of the program since the last counted part ended, in ns. */
static double used_ns(const struct opscope__moment *now)
{
    const struct opscope__cpu_times *from = &cycle.last.cpu, *to = &now->cpu;
    return fmax(0.0,
                (double)(int64_t)(to->known_ns + to->rest_ns - from->known_ns - from->rest_ns));
}

static void draw_gap(void)
{
    cycle.part = BETWEEN;
    /* Ticks: unlike those of any other process or earlier plan. */
    cycle.due_ns = opscope__gap_draw(&cycle.gap, opscope__monotonic_ns(), opscope__ticks());
}

static void warm_up(enum part part)
{
    cycle.part = part;
    cycle.due_ns = opscope__warm_up_begin(&cycle.warm_up, cycle.planned_on, cycle.length.stretch,
                                          cycle.planned_period, opscope__monotonic_ns());
}

/* Whether the warm-up has been stopped, and a second one has begun. */
static bool warms_up_again(void)
{
    const opscope__warm_up first = cycle.warm_up;
    const uint64_t now_ns = opscope__monotonic_ns();
    const double unit = opscope__random_unit(&cycle.gap.random);
    const uint64_t due_ns = opscope__warm_up_again(&cycle.warm_up, now_ns, unit);
    if (due_ns != 0) {
        cycle.due_ns = due_ns;
    }
    if (due_ns != 0 && cycle.part == WARM_UP) { /* begin_to_count() notes all the others */
        opscope__window_books_note_late(&cycle.books, (double)first.length_ns,
                                        opscope__since(first.start_ns, now_ns));
    }
    return due_ns != 0;
}

static void open_window(void)
{
    opscope__recorder_window_open();
    warm_up(WARM_UP);
}

static void begin_few(void)
{
    cycle.is_compared = opscope__recorder_wants_comparison(cycle.number++);
    opscope__registry_window_opens();
    if (!cycle.is_compared) {
        open_window();
        return;
    }
    opscope__window_compare_begin(&cycle.compare);
    warm_up(FEW_WARM_UP);
}

static void begin_to_compare(void)
{
    opscope__window_compare_count(&cycle.compare);
    cycle.part = FEW;
    const double on = cycle.planned_on * cycle.length.stretch;
    const double part = fmin(FEW_PART, FEW_LIMIT_PART * cycle.planned_period / on);
    cycle.due_ns = cycle.compare.from.wall_ns + (uint64_t)(fmax(FEW_LEAST_PART, part) * on);
}

static void end_few(void)
{
    opscope__window_compare_end(&cycle.compare);
    open_window();
}

static void begin_to_count(void)
{
    cycle.start = opscope__this_moment();
    if (cycle.is_compared) {
        opscope__window_compare_warm_up(&cycle.compare, &cycle.start, &cycle.warm_up);
    }
    opscope__window_books_note_late(&cycle.books, (double)cycle.warm_up.length_ns,
                                    opscope__since(cycle.warm_up.start_ns, cycle.start.wall_ns));
    cycle.weights = opscope__window_books_weights(&cycle.books, cycle.length.now);
    cycle.weights.known *= cycle.gap.periods;
    cycle.weights.rest *= cycle.gap.periods;
    opscope__recorder_set_weights(units(cycle.weights.known), units(cycle.weights.rest));
    cycle.part = COUNTED;
    cycle.due_ns =
        opscope__counted_part_begin(&cycle.counted, cycle.length.now, cycle.planned_period,
                                    opscope__gap_has_quota(&cycle.gap), opscope__monotonic_ns());
}

/* Whether the counted part goes on. */
static bool counts_on(void)
{
    if (cycle.due_ns == 0) { /* opscope__cycle_hurry */
        return false;
    }
    const uint64_t due_ns = opscope__counted_part_go_on(&cycle.counted, opscope__monotonic_ns());
    cycle.due_ns = due_ns != 0 ? due_ns : cycle.due_ns;
    return due_ns != 0;
}

static void stop_to_count(void)
{
    cycle.stop = opscope__this_moment();
    if (cycle.is_compared) {
        opscope__window_compare_report(&cycle.compare, &cycle.stop, cycle.weights.known,
                                       cycle.weights.rest);
    }
    opscope__recorder_set_weights(0, 0);
    opscope__window_books_note_late(&cycle.books, cycle.length.now,
                                    opscope__since(cycle.start.wall_ns, cycle.stop.wall_ns));
    cycle.part = TAIL;
    cycle.tail = cycle.stop;
    cycle.tail_step_ns = (uint64_t)cycle.planned_on / TAIL_PART + 1;
    cycle.due_ns = cycle.stop.wall_ns;
}

/* The next window may be longer or shorter. */
static void choose_length(double cpu, double wall)
{
    const struct opscope__cost *from = &cycle.start.cost, *to = &cycle.stop.cost;
    const double cost = opscope__since(from->sampled_ns, to->sampled_ns) * to->factor;
    opscope__window_books_resize(
        &cycle.books,
        opscope__window_length_note(&cycle.length, cost, cpu, wall, cycle.warm_up.first_ns));
}

static void close_window(void)
{
    opscope__recorder_window_close(cycle.stop.wall_ns - cycle.start.wall_ns,
                                   cycle.stop.wall_ns - cycle.last.wall_ns);
    opscope__registry_window_closes();
    const uint64_t drivers_ns = opscope__registry_drivers_ns();
    opscope__recorder_window_thread(drivers_ns - cycle.drivers_ns);
    cycle.drivers_ns = drivers_ns;
    const struct opscope__window_period period = {
        .last = &cycle.last,
        .start = &cycle.start,
        .stop = &cycle.stop,
        .weights = cycle.weights,
        .remaining = opscope__gap_remaining_ns(&cycle.gap, cycle.stop.wall_ns),
        .is_usual = cycle.gap.periods == 1};
    const double work = opscope__window_books_count(&cycle.books, &period);
    const struct opscope__variance_window window = {
        .work = work,
        .missing = opscope__window_books_missing(&cycle.books, cycle.stop.cpu.has_new,
                                                 cycle.stop.cost.slowdown_error),
        .busy = busy_ns(&cycle.tail)};
    opscope__recorder_window_vary(&window);
    const double wall = opscope__since(cycle.last.wall_ns, cycle.stop.wall_ns);
    opscope__gap_note(&cycle.gap, used_ns(&cycle.stop), wall);
    choose_length(used_ns(&cycle.stop), wall);
    cycle.last = cycle.stop;
    draw_gap();
}

static bool is_tail_over(void)
{
    if (cycle.tail_step_ns <= (uint64_t)cycle.planned_on) {
        return false;
    }
    const struct opscope__cpu_times *now = &cycle.tail.cpu, *then = &cycle.stop.cpu;
    const uint64_t cpu_ns = now->known_ns + now->rest_ns - then->known_ns - then->rest_ns;
    return (double)(int64_t)cpu_ns >= TAIL_CPU * cycle.planned_on ||
           opscope__since(cycle.stop.wall_ns, cycle.tail.wall_ns) >=
               TAIL_LIMIT_PART * cycle.planned_period;
}

/* Closes the window, or gives its open ranges some time to end, so that their self time is
 * known. */
static void close_or_wait(bool is_hurried)
{
    const bool is_waiting = cycle.due_ns != cycle.stop.wall_ns; /* the tail has begun */
    if (is_waiting) {
        cycle.tail = opscope__this_moment();
    }
    if (is_hurried || !opscope__recorder_has_open_ranges() || is_tail_over()) {
        close_window();
        return;
    }
    cycle.due_ns = opscope__monotonic_ns() + cycle.tail_step_ns;
    cycle.tail_step_ns *= 2;
}

static void step(bool is_hurried)
{
    switch (cycle.part) {
    case BETWEEN:
        cycle.due_ns = opscope__gap_again(&cycle.gap, opscope__monotonic_ns());
        if (cycle.due_ns == 0) {
            begin_few();
        }
        break;
    case FEW_WARM_UP:
        if (is_hurried || !warms_up_again()) {
            begin_to_compare();
        }
        break;
    case FEW:
        end_few();
        break;
    case WARM_UP:
        if (is_hurried || !warms_up_again()) {
            begin_to_count();
        }
        break;
    case COUNTED:
        if (is_hurried || !counts_on()) {
            stop_to_count();
        }
        break;
    case TAIL:
        close_or_wait(is_hurried);
        break;
    }
}

void opscope__cycle_begin(uint64_t window_ns, uint64_t period_ns)
{
    cycle.planned_on = (double)window_ns;
    cycle.planned_period = (double)period_ns;
    opscope__window_books_resize(
        &cycle.books,
        opscope__window_length_plan(&cycle.length, cycle.planned_on, cycle.planned_period));
    opscope__window_books_plan(&cycle.books, cycle.planned_on, cycle.planned_period);
    cycle.last = opscope__this_moment();
    opscope__gap_begin(&cycle.gap, period_ns, cycle.last.wall_ns);
    draw_gap();
}

void opscope__cycle_step(void)
{
    step(false);
}

uint64_t opscope__cycle_look_ns(void)
{
    const bool is_long =
        cycle.part == BETWEEN && opscope__gap_is_long(&cycle.gap, opscope__monotonic_ns());
    return is_long ? cycle.gap.look_ns : UINT64_MAX;
}

void opscope__cycle_look(void)
{
    struct opscope__cpu_times cpu;
    opscope__registry_read_cpu(&cpu);
    if (opscope__gap_look(&cycle.gap, cpu.known_ns + cpu.rest_ns, opscope__monotonic_ns())) {
        draw_gap();
    }
}

void opscope__cycle_end(void)
{
    while (cycle.part != BETWEEN) {
        step(true);
    }
    const struct opscope__moment now = opscope__this_moment();
    const struct opscope__window_period period = {
        .last = &cycle.last, .start = &now, .stop = &now, .is_usual = cycle.gap.periods == 1};
    (void)opscope__window_books_count(&cycle.books, &period);
    cycle.gap.long_to_ns = 0;
}

void opscope__cycle_hurry(void)
{
    cycle.due_ns = 0;
}

uint64_t opscope__cycle_due_ns(void)
{
    return cycle.due_ns;
}

bool opscope__cycle_is_open(void)
{
    return cycle.part != BETWEEN;
}

void opscope__cycle_fork_child(void)
{
    cycle = (struct cycle){0};
}
