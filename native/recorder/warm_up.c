/* recorder/warm_up.c -- see recorder/warm_up.h. */
#include "recorder/warm_up.h"

#include <math.h>

static const double LIMIT_NS = 1e6;
/* A short window has a short warm-up: at most this fraction of its length. */
static const double PART = 2.0;
/* A timer that is later has been stopped. */
static const uint64_t STOPPED_NS = 1000000;
/* A second warm-up has at least the length that the first would have in a program that does not
 * wait, and at most this many times as much. */
static const double MOST_AGAIN = 4.0;

/* If the program took 1 + s times as long in earlier ones, a warm-up takes 1 + PER_SLOWER s times
 * as long; at most MOST_LONGER times, and no longer than this part of the period. */
static const double PER_SLOWER = 5.0, MOST_LONGER = 8.0, LIMIT_PART = 0.0625;
/* The sums are over about this many warm-ups. */
static const double RECENT = 16.0;

static double longer(const opscope__warm_up *warm_up)
{
    const double slower = warm_up->few > 0.0 ? warm_up->warm / warm_up->few : 1.0;
    const double times = 1.0 + PER_SLOWER * (slower - 1.0);
    return times < 1.0 ? 1.0 : times < MOST_LONGER ? times : MOST_LONGER;
}

void opscope__warm_up_learn(opscope__warm_up *warm_up, double warm_ns, double warm_count,
                            double few_ns, double few_count)
{
    const double kept = 1.0 - 1.0 / RECENT;
    warm_up->warm = kept * warm_up->warm + warm_ns * few_count;
    warm_up->few = kept * warm_up->few + warm_count * few_ns;
}

static uint64_t begin(opscope__warm_up *warm_up, uint64_t length_ns, uint64_t now_ns)
{
    warm_up->start_ns = now_ns;
    warm_up->length_ns = length_ns;
    return now_ns + length_ns;
}

uint64_t opscope__warm_up_begin(opscope__warm_up *warm_up, double on_ns, double stretch,
                                double period_ns, uint64_t now_ns)
{
    const double usual_ns = fmin(on_ns / PART, LIMIT_NS);
    warm_up->is_second = false;
    const double most_ns = fmax(usual_ns, LIMIT_PART * period_ns);
    warm_up->again_ns = fmin(longer(warm_up) * usual_ns, most_ns);
    warm_up->first_ns = fmin(stretch * warm_up->again_ns, most_ns);
    return begin(warm_up, (uint64_t)warm_up->first_ns, now_ns);
}

uint64_t opscope__warm_up_again(opscope__warm_up *warm_up, uint64_t now_ns, double unit)
{
    const bool was_stopped = now_ns > warm_up->start_ns + warm_up->length_ns + STOPPED_NS;
    if (warm_up->is_second || !was_stopped) {
        return 0;
    }
    warm_up->is_second = true;
    const double times = 1.0 + (MOST_AGAIN - 1.0) * unit;
    return begin(warm_up, (uint64_t)(times * warm_up->again_ns), now_ns);
}
