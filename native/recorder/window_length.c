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

double opscope__window_length_plan(opscope__window_length *length, double window_ns,
                                   double period_ns)
{
    const double ratio = length->now > 0.0 ? window_ns / length->now : 1.0;
    *length =
        (opscope__window_length){.planned = window_ns,
                                 .limit = fmax(window_ns, fmin(LIMIT_NS, LIMIT_PART * period_ns)),
                                 .now = window_ns,
                                 /* As if windows of the planned length took all that they may. */
                                 .cost = SHARE * period_ns,
                                 .cpu = period_ns,
                                 .count = PLANNED_WINDOWS};
    return ratio;
}

double opscope__window_length_note(opscope__window_length *length, double cost, double cpu)
{
    const double before = length->now;
    length->count = fmin(RECENT_WINDOWS, length->count + 1.0);
    length->cost += (cost - length->cost) / length->count;
    length->cpu += (cpu - length->cpu) / length->count;
    const double rise = SHARE * length->cpu / (length->cost + LEAST_COST_NS);
    const double wanted = before * fmin(RISE_LIMIT, rise);
    length->now = fmin(length->limit, fmax(length->planned, wanted));
    /* What the last windows would have cost at this length. */
    length->cost *= length->now / before;
    return length->now / before;
}
