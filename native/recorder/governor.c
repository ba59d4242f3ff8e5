/* recorder/governor.c -- see recorder/governor.h. */
#include "recorder/governor.h"

/* Each period has one window, so an interval of 16 periods has 15 to 17. It also has enough CPU
 * time that a handful of ranges does not decide about a nearly idle process. */
static const uint64_t INTERVAL_NS = 2000000000, INTERVAL_CPU_NS = 20000000, INTERVAL_WINDOWS = 16;
/* Sampling less than this would observe almost nothing. */
static const double FLOOR_PROB = 1e-5;
static const uint64_t CEILING_PERIOD_NS = 60000000000;
static const double LEAST_SHARE = 0.25; /* of the budget, for operators beside outer ranges */
/* Of the budget: see recorder/governor.h. */
static const double NEAR = 0.8, TARGET = 0.6, WELL_BELOW = 0.4, RISE_LIMIT = 2.0;

/* The lowest scale: it keeps the sampling at its floor. */
static double floor_of(const struct opscope__sampling *asked)
{
    double least = asked->window_ns != 0 ? (double)asked->period_ns / (double)CEILING_PERIOD_NS
                                         : FLOOR_PROB / asked->prob;
    return least < 1.0 ? least : 1.0;
}

void opscope__governor_start(opscope__governor *governor, uint64_t budget_ppb,
                             uint64_t outer_budget_ppb, const struct opscope__governor_reading *now)
{
    *governor = (opscope__governor){.budget_ppb = budget_ppb,
                                    .outer_budget_ppb = outer_budget_ppb,
                                    .scale = 1.0,
                                    .adaptation_count = governor->adaptation_count,
                                    .start = *now};
}

uint64_t opscope__governor_interval_ns(const struct opscope__sampling *sampling)
{
    uint64_t windows_ns = sampling->window_ns != 0 ? INTERVAL_WINDOWS * sampling->period_ns : 0;
    return windows_ns > INTERVAL_NS ? windows_ns : INTERVAL_NS;
}

struct opscope__sampling opscope__governor_scaled(const opscope__governor *governor,
                                                  const struct opscope__sampling *asked)
{
    struct opscope__sampling scaled = *asked;
    if (governor->scale < 1.0) {
        if (asked->window_ns != 0) {
            scaled.period_ns = (uint64_t)((double)asked->period_ns / governor->scale);
        } else {
            scaled.prob = asked->prob * governor->scale;
        }
    }
    return scaled;
}

/* The segment may be a different one than before, with smaller sums. */
static double since(uint64_t before, uint64_t now)
{
    return now > before ? (double)(now - before) : 0.0;
}

bool opscope__governor_judge(opscope__governor *governor, const struct opscope__sampling *asked,
                             const struct opscope__governor_reading *now)
{
    const struct opscope__sampling before = opscope__governor_scaled(governor, asked);
    const struct opscope__governor_reading *start = &governor->start;
    const uint64_t wall_ns = now->wall_ns - start->wall_ns, cpu_ns = now->cpu_ns - start->cpu_ns;
    if (wall_ns < opscope__governor_interval_ns(&before) || cpu_ns < INTERVAL_CPU_NS) {
        return false;
    }
    const double cpu = (double)cpu_ns;
    const double whole = since(start->whole_ns, now->whole_ns) * now->whole_factor / cpu;
    const double overhead =
        since(start->sampled_ns, now->sampled_ns) * now->sampled_factor / cpu + whole;
    const double outer = now->follows_outer ? whole : 0.0;
    const double opening =
        since(start->driver_ns, now->driver_ns) / (double)(cpu_ns > wall_ns ? cpu_ns : wall_ns);
    const double whole_budget = (double)governor->budget_ppb / 1e9;
    const bool is_dear =
        governor->budget_ppb != 0 && outer > (double)governor->outer_budget_ppb / 1e9;
    const double left = whole_budget - outer, least_budget = LEAST_SHARE * whole_budget;
    const double budget = is_dear ? whole_budget : left > least_budget ? left : least_budget;
    const double share = overhead - outer + opening;
    const bool is_given_up = is_dear && !governor->spares_outer;
    governor->spares_outer |= is_dear;
    governor->overhead_ppb = (uint64_t)((overhead + opening) * 1e9);
    governor->start = *now;
    double scale = governor->scale;
    if (governor->budget_ppb == 0) {
        return false;
    }
    if (share > NEAR * budget) {
        scale *= TARGET * budget / share;
    } else if (share < WELL_BELOW * budget) {
        double rise = share * RISE_LIMIT > TARGET * budget ? TARGET * budget / share : RISE_LIMIT;
        scale *= rise;
    }
    const double least = floor_of(asked);
    scale = scale < least ? least : scale > 1.0 ? 1.0 : scale;
    if (scale == governor->scale) {
        return is_given_up;
    }
    governor->scale = scale;
    governor->adaptation_count++;
    return true;
}
