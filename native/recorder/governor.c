/* record/governor.c -- see record/governor.h. */
#include "record/governor.h"

/* An interval has so many windows, that their random number says little; and so much processor
 * time, that a nearly idle process is not judged by a handful of ranges. */
static const uint64_t INTERVAL_NS = 2000000000, INTERVAL_CPU_NS = 20000000, INTERVAL_WINDOWS = 16;
/* Below these there would be nothing to see any more. */
static const double FLOOR_PROB = 1e-5;
static const uint64_t CEILING_PERIOD_NS = 60000000000;
static const double TARGET = 0.75, WELL_BELOW = 0.5, RISE_LIMIT = 2.0;

/* The least scale: one that leaves the sampling at its floor. */
static double floor_of(const struct opscope__sampling *asked)
{
    double least = asked->window_ns != 0 ? (double)asked->period_ns / (double)CEILING_PERIOD_NS
                                         : FLOOR_PROB / asked->prob;
    return least < 1.0 ? least : 1.0;
}

void opscope__governor_start(opscope__governor *governor, uint64_t budget_ppb,
                             const struct opscope__governor_reading *now)
{
    *governor = (opscope__governor){.budget_ppb = budget_ppb,
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

/* Windows come at random: of the cost measured, the part that is due to there having been more or
 * fewer of them than planned is taken out before the sampling is judged by it. */
static double judged(double overhead, const struct opscope__sampling *sampling, uint64_t wall_ns,
                     uint64_t on_ns)
{
    if (sampling->window_ns == 0 || on_ns == 0) {
        return overhead;
    }
    double planned = (double)sampling->window_ns / (double)sampling->period_ns;
    return overhead * planned * (double)wall_ns / (double)on_ns;
}

bool opscope__governor_look(opscope__governor *governor, const struct opscope__sampling *asked,
                            const struct opscope__governor_reading *now)
{
    const struct opscope__sampling before = opscope__governor_scaled(governor, asked);
    const struct opscope__governor_reading *start = &governor->start;
    const uint64_t wall_ns = now->wall_ns - start->wall_ns, cpu_ns = now->cpu_ns - start->cpu_ns;
    if (wall_ns < opscope__governor_interval_ns(&before) || cpu_ns < INTERVAL_CPU_NS) {
        return false;
    }
    const double overhead = (double)(now->recording_ns - start->recording_ns) / (double)cpu_ns;
    const double budget = (double)governor->budget_ppb / 1e9;
    const double share = judged(overhead, &before, wall_ns, now->on_ns - start->on_ns);
    governor->overhead_ppb = (uint64_t)(overhead * 1e9);
    governor->start = *now;
    double scale = governor->scale;
    if (governor->budget_ppb == 0) {
        return false;
    }
    if (share > budget) {
        scale *= TARGET * budget / share;
    } else if (share < WELL_BELOW * budget) {
        double rise = share * RISE_LIMIT > TARGET * budget ? TARGET * budget / share : RISE_LIMIT;
        scale *= rise;
    }
    const double least = floor_of(asked);
    scale = scale < least ? least : scale > 1.0 ? 1.0 : scale;
    if (scale == governor->scale) {
        return false;
    }
    governor->scale = scale;
    governor->adaptation_count++;
    return true;
}
