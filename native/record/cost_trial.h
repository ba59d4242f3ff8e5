/* record/cost_trial.h -- what a range costs more that comes by way of a framework: measured on the
 * spot, by running an operator of the framework's in turns with its ranges seen and not seen.
 *
 * What sees them is a callback that does nothing, on the calling thread alone: the recorder's own
 * part it measures itself (record/recorder_life.c), so neither needs the other, whichever comes
 * first. What runs meanwhile on this thread is not recorded, and nothing of it is left in any
 * table.
 *
 * A round is a few calls of the operator. A round that is disturbed, by a window that opens or by
 * another thread that registers a callback, does not count; of the others the least does.
 */
#ifndef OPSCOPE_RECORD_COST_TRIAL_H
#define OPSCOPE_RECORD_COST_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/export.h"

struct opscope__firing;

/* Owner: the thread that measures. */
typedef struct opscope__cost_trial {
    struct opscope__firing *firing;
    bool was_recording;
    bool is_seen;
    uint64_t end_ns; /* no round starts after it */
    uint64_t start_ticks;
    uint64_t least_ticks[2]; /* of a round, not seen and seen; UINT64_MAX: there was none */
} opscope__cost_trial;

/* False, and nothing is to be ended, where memory ran out or this is within a callback. */
OPSCOPE_API bool opscope__cost_trial_begin(opscope__cost_trial *trial);
/* From here on this thread's ranges are seen, or not: the countdowns of all scopes say so. */
OPSCOPE_API void opscope__cost_trial_set(opscope__cost_trial *trial, bool is_seen);
/* Around the calls of a round. Starting one is refused once the trial has taken a millisecond,
 * however slow operators are: by a debugger, or by threads that take the interpreter from each
 * other. */
OPSCOPE_API bool opscope__cost_trial_start(opscope__cost_trial *trial);
OPSCOPE_API void opscope__cost_trial_stop(opscope__cost_trial *trial);
/* The thread is as before. What a range cost more when it was seen, in picoseconds, `count` of them
 * making a round; 0 where that is not known. */
OPSCOPE_API uint64_t opscope__cost_trial_end(opscope__cost_trial *trial, uint32_t count);

#endif
