/* recorder/window_length.c -- see recorder/window_length.h. */
#include "recorder/window_length.h"

#include <math.h>

/* Of the program's CPU time, for recording in windows that are longer than planned. */
static const double SHARE = 0.0005;
static const double LIMIT_NS = 50e6;
static const double LIMIT_PART = 0.2;
/* The means are over this many windows; at first, what is planned counts as this many. */
static const double RECENT_WINDOWS = 8.0, PLANNED_WINDOWS = 2.0;
/* A window is at most this many times as long as the one before. */
static const double RISE_LIMIT = 1.5;
/* Without this, a program that does almost nothing would have long windows, and the next work it
 * does would meet one. */
static const double LEAST_COST_NS = 2000.0;
/* A program that uses a share of a processor has windows 1 / share times as long, at most
 * MOST_STRETCH; but at most share / ALMOST_NOTHING times. */
static const double MOST_STRETCH = 5.0, ALMOST_NOTHING = 0.01;

double opscope__window_length_plan(opscope__window_length *length, double window_ns,
                                   double period_ns)
{
    const double before = length->now;
    const double limit = fmax(window_ns, fmin(LIMIT_NS, LIMIT_PART * period_ns));
    if (length->planned == window_ns) {
        length->cpu *= period_ns / length->wall;
        length->wall = period_ns;
        length->now = fmin(length->now, limit);
        length->cost *= length->now / before;
        length->limit = limit;
        return length->now / before;
    }
    *length = (opscope__window_length){.planned = window_ns,
                                       .limit = limit,
                                       .now = window_ns,
                                       /* As if windows of that length took all that they may. */
                                       .cost = SHARE * period_ns,
                                       .cpu = period_ns,
                                       .wall = period_ns,
                                       .count = PLANNED_WINDOWS,
                                       .stretch = 1.0};
    return before > 0.0 ? window_ns / before : 1.0;
}

static double stretch(double share)
{
    const double wanted = fmin(1.0 / fmax(share, ALMOST_NOTHING), share / ALMOST_NOTHING);
    return fmax(1.0, fmin(MOST_STRETCH, wanted));
}

double opscope__window_length_note(opscope__window_length *length, double cost, double cpu,
                                   double wall, double warm_up)
{
    const double before = length->now;
    length->count = fmin(RECENT_WINDOWS, length->count + 1.0);
    length->cost += (cost - length->cost) / length->count;
    length->cpu += (cpu - length->cpu) / length->count;
    length->wall += (wall - length->wall) / length->count;
    length->stretch = stretch(length->cpu / length->wall);
    const double least = fmin(length->limit, fmax(length->stretch * length->planned, warm_up));
    const double rise = SHARE * length->cpu / (length->cost + LEAST_COST_NS);
    const double wanted = fmax(least, before * rise);
    length->now = fmin(length->limit, fmin(RISE_LIMIT * before, wanted));
    /* What the last windows would have cost at this length. */
    length->cost *= length->now / before;
    return length->now / before;
}
