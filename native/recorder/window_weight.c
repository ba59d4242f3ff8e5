/* recorder/window_weight.c -- see recorder/window_weight.h. */
#include "recorder/window_weight.h"

#include <math.h>

/* Windows pay back owed work over this many windows. A low number leaves little owed work when a
 * program ends, which is an error of its estimates; a lower one makes the weights, and so the
 * estimates, vary too much. By simulation of programs that work all the time, or in bursts for a
 * half to a hundredth of it: over 60 windows 2 to 4 are best; over 1,200 it makes no difference. */
static const double HORIZON_WINDOWS = 4.0;
static const double PRIOR_WINDOWS = 10.0;
/* By simulation of a program that gets five times as much of a processor in windows as at other
 * times: 20 % too much after 16 windows, 4 % after 32; by time alone 95 % and 48 %. With fewer,
 * programs of which few windows meet work are counted too little at first: with 3, that work in one
 * part of ten, 10 % after 16 windows and 7 % after 32. */
static const double PRIOR_WORK = 3.0;
/* The quotient is over about this many windows, so that it follows a program that changes. */
static const double RECENT_WINDOWS = 64.0;
/* A window, or the time before it, that took this many times its planned length means that the
 * process was stopped meanwhile: it is ignored when learning the share of time in windows. */
static const double STOPPED = 50.0;
/* A part with less work than this in windows gives no information on how to pay back its owed
 * work. */
static const double LEAST_WORK = 0.02;
/* However much work is owed, a range represents at most this many times its share by time. */
static const double RISE_LIMIT = 4.0;
/* Whatever the estimated cost of recording, some of the time was work. */
static const double RECORDING_LIMIT = 0.9;
/* The variance of what is counted at a moment of a period, relative to the square of its work: at
 * the part v of it, its window was before with a probability of v, and 1 - v is counted too much;
 * or v is not counted yet. So it is the mean of v (1 - v). */
static const double VARIANCE_IN_PERIOD = 1.0 / 6.0;

/* The cost of recording as measured in loops, of a stretch with that CPU time; less if it were more
 * than RECORDING_LIMIT of it. */
static double within(double recording, double cpu, double slowdown)
{
    if (cpu <= 0.0) {
        return 0.0;
    }
    return slowdown > 0.0 ? fmin(recording, RECORDING_LIMIT * cpu / slowdown) : recording;
}

void opscope__window_weight_plan(opscope__window_weight *book, double window_ns, double period_ns)
{
    book->planned_on = window_ns;
    book->planned_wall = period_ns;
    book->on = book->wall = book->count = 0.0;
    book->all = book->met = book->all_wall = book->recent = 0.0;
    book->remaining = 0.0;
}

void opscope__window_weight_resize(opscope__window_weight *book, double ratio)
{
    /* As if the windows before had been that long: what is known of the program stays known. */
    book->planned_on *= ratio;
    book->on *= ratio;
    book->met *= ratio;
    book->typical *= ratio;
}

void opscope__window_weight_expect(opscope__window_weight *book, double on_ns)
{
    book->planned_on = on_ns;
}

/* The work that is expected in that much time. */
static double expected(const opscope__window_weight *book, double ns)
{
    return book->all_wall > 0.0 ? book->all / book->all_wall * ns : 0.0;
}

/* How many ns of work there are for each in windows: by what is known of work, and for
 * PRIOR_WORK windows, by the quotient of times. */
static double by_work(const opscope__window_weight *book, double by_time)
{
    const double prior = PRIOR_WORK * book->typical;
    const double met = prior + book->met;
    const double all = book->all + expected(book, book->remaining);
    return met > 0.0 ? (prior * by_time + all) / met : by_time;
}

/* What is owed beyond the work that was still expected after the last window. */
static double owed(const opscope__window_weight *book)
{
    return book->owed + expected(book, book->remaining);
}

double opscope__window_weight_now(const opscope__window_weight *book)
{
    const double by_time = (PRIOR_WINDOWS * book->planned_wall + book->wall + book->remaining) /
                           (PRIOR_WINDOWS * book->planned_on + book->on);
    /* Without this factor, the time that recording takes from a window would always leave owed
     * work. */
    const double share = by_time * (book->work > 0.0 ? book->inside / book->work : 1.0);
    double weight = by_work(book, share);
    /* The first windows pay back sooner: a short process has no later ones. */
    const double horizon =
        book->count + 2.0 < HORIZON_WINDOWS ? book->count + 2.0 : HORIZON_WINDOWS;
    if (book->typical > LEAST_WORK * book->planned_on) {
        weight += owed(book) / (horizon * book->typical);
    }
    weight = weight < RISE_LIMIT * by_time ? weight : RISE_LIMIT * by_time;
    return weight > 1.0 ? weight : 1.0;
}

double opscope__window_weight_missing(const opscope__window_weight *book, double error)
{
    const double in_period = sqrt(VARIANCE_IN_PERIOD) * expected(book, book->planned_wall);
    return hypot(hypot(owed(book), in_period), error * book->recording);
}

static void compare(opscope__window_weight *book, double all, double met, double wall)
{
    if (book->recent >= RECENT_WINDOWS) {
        const double kept = 1.0 - 1.0 / RECENT_WINDOWS;
        book->all *= kept;
        book->met *= kept;
        book->all_wall *= kept;
        book->recent *= kept;
    }
    book->all += fmax(0.0, all);
    book->met += fmax(0.0, met);
    book->all_wall += wall;
    book->recent += 1.0;
}

double opscope__window_weight_count(opscope__window_weight *book,
                                    const struct opscope__window_weight_cycle *cycle)
{
    book->owed += (cycle->slowdown - book->slowdown) * book->recording;
    book->slowdown = cycle->slowdown;
    const double recording = within(cycle->recording, cycle->inside, cycle->slowdown);
    const double recording_outside =
        within(cycle->recording_outside, cycle->outside, cycle->slowdown);
    const double work = cycle->inside - recording * cycle->slowdown;
    book->recording += (cycle->weight - 1.0) * recording - recording_outside;
    const double all = cycle->outside - recording_outside * cycle->slowdown + work;
    if (cycle->on < STOPPED * book->planned_on && cycle->wall < STOPPED * book->planned_wall) {
        book->on += cycle->on;
        book->wall += cycle->wall;
        if (cycle->weight > 0.0 && cycle->on > 0.0) {
            compare(book, all, work, cycle->wall);
        }
    }
    book->count += cycle->weight > 0.0;
    book->remaining = cycle->remaining;
    if (work > 0.0) {
        book->inside += cycle->inside;
        book->work += work;
    }
    book->owed += all - cycle->weight * work;
    if (work > 0.0) {
        /* Windows with more work have more influence: `typical` is the pay-back of a window that
         * pays back; windows with almost no work pay back nothing. */
        const double share = work / (HORIZON_WINDOWS * book->typical + work);
        book->typical += share * (work - book->typical);
    }
    return cycle->weight * work;
}
