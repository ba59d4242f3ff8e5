/* record/exposure.c -- see record/exposure.h. */
#include "record/exposure.h"

/* A debt is paid back over so many windows: so many that chance alone, which has weights vary by a
 * share of 1 / sqrt(2 n), makes estimates no worse to speak of (3 % more variance); so few that
 * little is owed when a program ends. */
static const double HORIZON_WINDOWS = 16.0;
static const double PRIOR_WINDOWS = 10.0;
/* However much is owed, no range is to stand for more than so many times its share by time. */
static const double RISE_LIMIT = 4.0;
/* Whatever recording is thought to cost, some of a window went into work. */
static const double RECORDING_LIMIT = 0.9;

void opscope__exposure_plan(opscope__exposure *exposure, double window_ns, double period_ns)
{
    exposure->planned_on = window_ns;
    exposure->planned_wall = period_ns;
    exposure->on = exposure->wall = 0.0;
}

double opscope__exposure_weight(const opscope__exposure *exposure)
{
    const double by_time = (PRIOR_WINDOWS * exposure->planned_wall + exposure->wall) /
                           (PRIOR_WINDOWS * exposure->planned_on + exposure->on);
    double weight = by_time;
    if (exposure->typical > 0.0) {
        weight += exposure->owed / (HORIZON_WINDOWS * exposure->typical);
    }
    weight = weight < RISE_LIMIT * by_time ? weight : RISE_LIMIT * by_time;
    return weight > 1.0 ? weight : 1.0;
}

void opscope__exposure_count(opscope__exposure *exposure,
                             const struct opscope__exposure_cycle *cycle)
{
    const double limit = RECORDING_LIMIT * cycle->inside;
    const double work = cycle->inside - (cycle->recording < limit ? cycle->recording : limit);
    exposure->on += cycle->on;
    exposure->wall += cycle->wall;
    exposure->owed += cycle->outside + work - cycle->weight * work;
    if (work > 0.0) {
        /* The more work a window had, the more it says: `typical` is how much is paid back by one
         * that pays, and those with next to none do not. */
        const double share = work / (HORIZON_WINDOWS * exposure->typical + work);
        exposure->typical += share * (work - exposure->typical);
    }
}
