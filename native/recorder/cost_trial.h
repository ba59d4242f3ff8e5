/* recorder/cost_trial.h -- measures the extra cost of a framework's ranges in this process, by
 * running an operator of the framework with and without its ranges observed, in turns.
 *
 * The observer is a callback that does nothing, on the calling thread only. The recorder measures
 * its own part itself (recorder/life.c), so the two measurements may run in either order.
 * Everything that runs on this thread meanwhile stays out of all tables.
 *
 * A round is a few calls of the operator. Rounds that a window, or another thread's registration of
 * a callback, disturbs do not count; of the others, the shortest counts.
 */
#ifndef OPSCOPE_RECORDER_COST_TRIAL_H
#define OPSCOPE_RECORDER_COST_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/export.h"

struct opscope__snapshot;

/* Owner: the thread that measures. */
typedef struct opscope__cost_trial {
    struct opscope__snapshot *snapshot;
    bool was_recording;
    bool is_seen;
    uint64_t end_cpu_ns; /* no round starts later */
    uint64_t start_ticks;
    uint64_t least_ticks[2]; /* of a round, unobserved and observed; UINT64_MAX: none yet */
} opscope__cost_trial;

/* Returns false if memory ran out or the caller is inside a callback; the trial must then not be
 * ended. */
OPSCOPE_API bool opscope__cost_trial_begin(opscope__cost_trial *trial);
/* From now on this thread's ranges are observed, or not: sets the countdowns of all scopes. */
OPSCOPE_API void opscope__cost_trial_set(opscope__cost_trial *trial, bool is_seen);
/* Around the calls of a round. start returns false once the trial has taken a millisecond. This
 * bounds a trial with slow operators, under a debugger or with threads that compete for the GIL. */
OPSCOPE_API bool opscope__cost_trial_start(opscope__cost_trial *trial);
OPSCOPE_API void opscope__cost_trial_stop(opscope__cost_trial *trial);
/* Restores the thread. Returns the extra cost of an observed range in picoseconds, for rounds of
 * `count` ranges; 0 if it is unknown. */
OPSCOPE_API uint64_t opscope__cost_trial_end(opscope__cost_trial *trial, uint32_t count);

/* What the trial's observer costs per range, in ticks: dispatch alone. 0 if the measurement
 * failed. */
double opscope__cost_trial_dispatch_ticks(void);

#endif
