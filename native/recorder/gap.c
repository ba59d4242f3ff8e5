/* recorder/gap.c -- see recorder/gap.h. */
#include "recorder/gap.h"

#include <math.h>

/* Of a processor: less than this is almost nothing. */
static const double STILL_SHARE = 0.001;
/* A driver that is less late is in time. */
static const uint64_t LITTLE_NS = 1000000;
/* After this many late moments, their counts are halved: older ones then count less. */
static const double LATE_MOMENTS = 64.0;
/* A quota is assumed only after this many very late moments. */
static const double FEWEST = 4.0;

void opscope__gap_begin(opscope__gap *gap, uint64_t period_ns, uint64_t now_ns)
{
    gap->period_ns = (double)period_ns;
    gap->start_ns = now_ns;
    gap->still = 0;
    gap->periods = 1;
    gap->long_to_ns = 0;
}

uint64_t opscope__gap_draw(opscope__gap *gap, uint64_t now_ns, uint64_t seed)
{
    if (!gap->is_seeded) {
        opscope__random_seed(&gap->random, 0, seed);
        gap->is_seeded = true;
    }
    gap->periods = gap->still >= OPSCOPE__GAP_STILL_WINDOWS ? OPSCOPE__GAP_STILL_PERIODS : 1;
    const double length = gap->period_ns * gap->periods;
    if ((double)now_ns > (double)gap->start_ns + length) {
        gap->start_ns = now_ns;
    }
    const uint64_t due_ns = gap->start_ns + (uint64_t)(opscope__random_unit(&gap->random) * length);
    gap->start_ns += (uint64_t)length;
    gap->due_ns = due_ns > now_ns ? due_ns : now_ns;
    gap->again = 0;
    if (gap->periods > 1) {
        if (!opscope__gap_is_long(gap, now_ns)) {
            gap->look_ns = now_ns + OPSCOPE__GAP_LOOK_NS;
            gap->looked_ns = 0;
        }
        gap->long_to_ns = gap->start_ns;
    }
    return gap->due_ns;
}

/* Whether a moment that is this late was in a stop by a quota. Moments are equally likely anywhere
 * in a stop, so most of those in stops of 40 ms are very late; beside other processes hardly any
 * is. */
static bool was_stopped(opscope__gap *gap, uint64_t late_ns)
{
    if (late_ns < LITTLE_NS) {
        return false;
    }
    if (gap->late_little + gap->late_much >= LATE_MOMENTS) {
        gap->late_little /= 2.0;
        gap->late_much /= 2.0;
    }
    const bool is_much = late_ns >= OPSCOPE__GAP_LATE_NS;
    *(is_much ? &gap->late_much : &gap->late_little) += 1.0;
    return is_much || opscope__gap_has_quota(gap);
}

bool opscope__gap_has_quota(const opscope__gap *gap)
{
    return gap->late_much >= FEWEST && 2.0 * gap->late_much > gap->late_little;
}

uint64_t opscope__gap_again(opscope__gap *gap, uint64_t now_ns)
{
    const uint64_t late_ns = now_ns > gap->due_ns ? now_ns - gap->due_ns : 0;
    if (!was_stopped(gap, late_ns) || gap->again == OPSCOPE__GAP_AGAIN_TIMES) {
        return 0;
    }
    gap->again++;
    const double within = fmin(OPSCOPE__GAP_AGAIN_NS, 2.0 * gap->period_ns);
    gap->due_ns = now_ns + (uint64_t)(opscope__random_unit(&gap->random) * within);
    return gap->due_ns;
}

double opscope__gap_remaining_ns(const opscope__gap *gap, uint64_t now_ns)
{
    return gap->periods == 1 ? (double)(int64_t)(gap->start_ns - now_ns) : 0.0;
}

void opscope__gap_note(opscope__gap *gap, double cpu_ns, double wall_ns)
{
    if (cpu_ns > STILL_SHARE * wall_ns) {
        gap->still = 0;
    } else if (gap->still < OPSCOPE__GAP_STILL_WINDOWS) {
        gap->still++;
    }
}

bool opscope__gap_is_long(const opscope__gap *gap, uint64_t now_ns)
{
    return now_ns < gap->long_to_ns;
}

bool opscope__gap_look(opscope__gap *gap, uint64_t cpu_ns, uint64_t now_ns)
{
    const bool is_first = gap->looked_ns == 0;
    const double cpu = cpu_ns > gap->looked_cpu_ns ? (double)(cpu_ns - gap->looked_cpu_ns) : 0.0;
    const double wall = (double)(now_ns - gap->looked_ns);
    gap->looked_ns = now_ns;
    gap->looked_cpu_ns = cpu_ns;
    gap->look_ns += (1 + (now_ns - gap->look_ns) / OPSCOPE__GAP_LOOK_NS) * OPSCOPE__GAP_LOOK_NS;
    if (is_first || cpu <= STILL_SHARE * wall) {
        return false;
    }
    gap->still = 0;
    gap->start_ns = now_ns;
    gap->long_to_ns = 0;
    return true;
}
