/* opscope/recorder.h -- the built-in observer: adds every range it sees to tables in shared memory.
 *
 * The idea: a process has one recorder. It is an ordinary global callback whose end adds the range
 * to the calling thread's table in the process's segment (opscope/segment.h), with plain stores.
 * Another process can therefore read the table at any moment, and a killed process loses nothing.
 *
 * Threads: start, stop and the settings take a lock; recording itself takes none, on any thread.
 * Forks: the child gets an empty segment of its own, with the same settings.
 *
 *     opscope_recorder_options options = {.directory = "/dev/shm/opscope-1000",
 *                                         .sampling_prob = 1.0};
 *     int status = opscope_recorder_start(&options);
 */
#ifndef OPSCOPE_RECORDER_H
#define OPSCOPE_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/segment.h"
#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef struct opscope_recorder_options {
    const char *directory;     /* of the segment; created with mode 0700 if it is missing */
    const char *label_keys;    /* debug-info keys for labels: at most two, separated by a comma */
    double sampling_prob;      /* [0, 1]: of each range; ignored unless window_ns is 0 */
    uint64_t window_ns;        /* least length of a window; 0: no windows */
    uint64_t period_ns;        /* mean time from the start of one window to the next; > window_ns */
    uint32_t scopes;           /* as in opscope_callback; 0: all */
    uint64_t max_overhead_ppb; /* maximum share of the process's CPU time for recording, times 1e9:
                                  above it, the recorder samples less; 0: no limit */
    bool budget_is_default;    /* true: no limit applies while every range is recorded, because the
                                  user asked for exact counts */
} opscope_recorder_options;

typedef struct opscope_recorder_status {
    bool running;            /* also false in a forked child that could not begin a segment */
    bool in_window;          /* always true without windows */
    uint64_t dropped_count;  /* ranges that are in no table, because there was no room */
    uint64_t folded_count;   /* ranges counted under "other", because there was no room */
    uint64_t window_count;   /* windows opened so far */
    uint64_t record_cost_ps; /* cost of recording a range in picoseconds, measured at the start */
    char path[256];          /* of the segment; "" if there is no segment, or none yet */
} opscope_recorder_status;

/* ERR_BUSY if a recorder runs already. ERR_NO_SPACE, ERR_READ_ONLY, ERR_PERMISSION or ERR_IO if the
 * segment cannot be created, ERR_LIMITED if the process may use less than 1 GiB of address space
 * (RLIMIT_AS): the program then continues unobserved. */
OPSCOPE_API int opscope_recorder_start(const opscope_recorder_options *options);
/* Stops recording. The segment stays, marked closed, until the host agent has merged it. `discard`
 * removes the file at once. */
OPSCOPE_API int opscope_recorder_stop(bool discard);
OPSCOPE_API void opscope_recorder_read_status(opscope_recorder_status *out);

/* Changes how a running recorder samples; arguments as in the options. ERR_NOT_FOUND if no recorder
 * runs; ERR_INVALID for a probability below 1e-12 that is not 0, a period over 1e15 ns, or a period
 * of 1e9 windows or more: their weights would not fit the segment. */
OPSCOPE_API int opscope_recorder_set_sampling(double sampling_prob, uint64_t window_ns,
                                              uint64_t period_ns);

/* Changes settings over the recorder's configuration, as a control block does (opscope/segment.h;
 * the fields of `change` up to label_keys). The control block overrides these changes; the process
 * applies them when it begins. ERR_INVALID, with nothing changed, if a value is out of range:
 * *out_refused then has the bits of those settings. */
OPSCOPE_API int opscope_recorder_inherit(const opscope_control *change, uint64_t *out_refused);

/* Writes a fact about the process into the segment ("bridge.numpy", "attached"); a later value
 * replaces an earlier one. ERR_NOT_FOUND if no recorder runs. */
OPSCOPE_API int opscope_recorder_note(const char *key, const char *value);

/* For bindings and bridges: recording a range of this operator costs `extra_ps` picoseconds more
 * than the recorder measures for a call from C, because of code around the call that runs only
 * while it is recorded. The reported overhead includes this cost, and so does the overhead that the
 * budget limits. Callable from any thread, with or without a recorder. The first value stays, and
 * only if it comes before the operator's first recorded range. */
OPSCOPE_API void opscope_recorder_extra_cost(uint32_t op_id, uint64_t extra_ps);

/* For tests, and for drivers with their own clock: opens and closes a window by hand. Every range
 * opened between begin and end is recorded with `weight` (1 to 1e9). Only while windows are on. */
OPSCOPE_API int opscope_recorder_window_begin(double weight);
OPSCOPE_API int opscope_recorder_window_end(void);

OPSCOPE_END_DECLS

#endif
