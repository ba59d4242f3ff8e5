/* recorder/governor.h -- keeps the cost of recording within a budget by sampling less.
 *
 * The cost of recording is the number of recorded ranges times the cost of a range of their
 * operator (recorder/cost.h). The budget is a share of the whole process's CPU time. Wall time
 * would be wrong: a program that waits much, or runs on a large machine, would pay more per second
 * of work than one that computes on one thread. A share of CPU time is how much more expensive the
 * work becomes, whatever the number of threads, and what a fleet pays.
 *
 * The budget is a limit, and the cost is known to a fifth. Above four fifths of the budget, the
 * governor scales sampling down at once, to three fifths. Below two fifths, it scales sampling up
 * again, by at most a factor of two at a time and never above the requested sampling. Between the
 * two it changes nothing, so that it does not oscillate.
 *
 * Opening windows takes a thread's time, whatever the program does. The governor compares that time
 * with the larger of the process's CPU time and the wall time. A program that mostly waits
 * therefore keeps its windows, and windows that open every few microseconds take no more than the
 * budget of one processor.
 *
 * Outer ranges are always followed; no scale makes them cheaper. Operators get what they leave of
 * the budget, in fewer windows, and at least a quarter of it: a phase that is known is worth more
 * than a smaller standard error. Outer ranges have a budget of their own. If they take more, the
 * recorder stops following them until the settings change: a window then knows only what encloses
 * operators if it began inside the window, and the phase of the others is unknown.
 *
 * This code is arithmetic: no clock, no lock. Its caller, recorder/control.c, passes the time and
 * holds the settings lock.
 */
#ifndef OPSCOPE_RECORDER_GOVERNOR_H
#define OPSCOPE_RECORDER_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "recorder/settings.h"

/* Counted from any fixed moment. */
struct opscope__governor_reading {
    uint64_t wall_ns;
    uint64_t cpu_ns; /* of the process, all threads */
    /* What recording costs, as measured in loops (recorder/cost.h), of ranges that are sampled and
     * of those that are all recorded; and by how much more they cost in this program, as known now.
     * A factor changes as the recorder learns: the difference of two products would also have in
     * it what is newly known of all the time before. */
    uint64_t sampled_ns, whole_ns;
    double sampled_factor, whole_factor;
    bool follows_outer; /* the latter are outer ranges, whose cost does not depend on windows */
    uint64_t driver_ns; /* CPU time of the thread that opens windows, counted separately */
};

typedef struct opscope__governor {
    uint64_t budget_ppb; /* 0: no limit, and no scaling */
    uint64_t outer_budget_ppb;
    double scale; /* of the requested sampling: 1 for all of it, less while over the budget */
    uint64_t overhead_ppb; /* measured over the last interval; 0 before the end of the first */
    uint64_t adaptation_count;
    bool spares_outer; /* outer ranges took more than their budget: they are not followed */
    struct opscope__governor_reading start; /* of the interval */
} opscope__governor;

/* Starts measuring at `now`, with the sampling as requested. Counts continue. */
void opscope__governor_start(opscope__governor *governor, uint64_t budget_ppb,
                             uint64_t outer_budget_ppb,
                             const struct opscope__governor_reading *now);

/* The length of an interval with this sampling. */
uint64_t opscope__governor_interval_ns(const struct opscope__sampling *sampling);

/* Call it at each poll: after an interval it measures and scales; `asked` is the requested
 * sampling. True if the resulting sampling changes. */
bool opscope__governor_judge(opscope__governor *governor, const struct opscope__sampling *asked,
                             const struct opscope__governor_reading *now);

/* The requested sampling, scaled. */
struct opscope__sampling opscope__governor_scaled(const opscope__governor *governor,
                                                  const struct opscope__sampling *asked);

#endif
