/* record/governor.h -- keeps what recording costs within a budget, by sampling less.
 *
 * What recording costs is known: the ranges recorded, times what one of their operator costs
 * (measured: record/cost.h). It is held against the processor time of the whole process. Not
 * against wall time: that would let a program that waits much, or runs on a large machine, pay more
 * for each second of work than one that computes on one thread; a share of processor time is what
 * the work becomes dearer by, whatever the number of threads, and what a fleet pays.
 *
 * The budget is a limit. Above it, sampling is scaled down at once, to three quarters of it; below
 * half of it sampling is scaled up again, at most doubled at a time and never beyond what was asked
 * for. Between the two nothing changes, so that it does not swing.
 *
 * Arithmetic only: no clock, no lock. Its user, record/control.c, says when it is and holds the
 * settings lock.
 */
#ifndef OPSCOPE_RECORD_GOVERNOR_H
#define OPSCOPE_RECORD_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>

#include "record/settings.h"

/* Since any fixed moment. */
struct opscope__governor_reading {
    uint64_t wall_ns;
    uint64_t cpu_ns;       /* of the process, all threads */
    uint64_t recording_ns; /* of it, what recording took (record/cost.h) */
    uint64_t on_ns;        /* time inside windows */
};

typedef struct opscope__governor {
    uint64_t budget_ppb;   /* 0: any cost; then nothing is scaled */
    double scale;          /* of what is asked for: 1 all of it, less while over the budget */
    uint64_t overhead_ppb; /* measured over the last interval; 0 before the first has passed */
    uint64_t adaptation_count;
    struct opscope__governor_reading start; /* of the interval */
} opscope__governor;

/* Measures from `now` on; sampling is as asked for. Counts go on. */
void opscope__governor_start(opscope__governor *governor, uint64_t budget_ppb,
                             const struct opscope__governor_reading *now);

/* How long an interval lasts with this sampling. */
uint64_t opscope__governor_interval_ns(const struct opscope__sampling *sampling);

/* A look: where an interval has passed, measures, and scales; `asked` is what was asked for. True
 * where the sampling that results is another one than before. */
bool opscope__governor_look(opscope__governor *governor, const struct opscope__sampling *asked,
                            const struct opscope__governor_reading *now);

/* What was asked for, scaled. */
struct opscope__sampling opscope__governor_scaled(const opscope__governor *governor,
                                                  const struct opscope__sampling *asked);

#endif
