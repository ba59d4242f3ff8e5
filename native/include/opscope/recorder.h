/* opscope/recorder.h -- the built-in observer: adds every range it sees to tables in shared memory.
 *
 * The idea: one recorder for a process. It is an ordinary global callback whose end adds the range
 * to the calling thread's table in the process's segment (opscope/segment.h), with plain stores,
 * so that another process can read it at any moment and nothing is lost when this one is killed.
 *
 * Threads: start, stop and the settings from one thread at a time (they take a lock); recording
 * itself from all threads without one. Forks: the child gets a segment of its own, empty, with the
 * same settings.
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
    const char *directory;     /* where the segment goes; made with mode 0700 where missing */
    const char *label_keys;    /* debug-info keys that become labels, by commas; at most two */
    double sampling_prob;      /* [0, 1]: of each range; ignored where window_ns is not 0 */
    uint64_t window_ns;        /* length of a window; 0: no windows */
    uint64_t period_ns;        /* mean time from the start of one window to the next; > window_ns */
    uint32_t scopes;           /* as in opscope_callback; 0: all */
    uint64_t max_overhead_ppb; /* share of the process's CPU time that recording may take, times
                                  1e9: above it less is sampled; 0: no limit */
    bool spares_all;           /* no limit while every range is recorded: a wish for exactness */
} opscope_recorder_options;

typedef struct opscope_recorder_status {
    bool running;            /* false too in a forked child that could begin no segment */
    bool in_window;          /* always true where windows are off */
    uint64_t dropped_count;  /* ranges that found no room and are in no table */
    uint64_t folded_count;   /* ranges counted under "other" for want of room */
    uint64_t window_count;   /* windows opened so far */
    uint64_t record_cost_ps; /* measured at start: picoseconds a recorded range costs */
    char path[256];          /* of the segment; "" where there is none, or none yet */
} opscope_recorder_status;

/* ERR_BUSY where one runs; ERR_NO_SPACE, ERR_READ_ONLY, ERR_PERMISSION, ERR_IO where the segment
 * could not be made, ERR_LIMITED where less than 1 GiB of address space is allowed (RLIMIT_AS): the
 * program goes on unobserved. */
OPSCOPE_API int opscope_recorder_start(const opscope_recorder_options *options);
/* Stops recording; the segment stays, marked closed, for the host agent to take in.
 * With `discard` the file is removed at once. */
OPSCOPE_API int opscope_recorder_stop(bool discard);
OPSCOPE_API void opscope_recorder_read_status(opscope_recorder_status *out);

/* Changes how a running recorder samples; arguments as in the options. ERR_NOT_FOUND where none
 * runs; ERR_INVALID for a probability below 1e-12 that is not 0, a period over 1e15 ns, or one of
 * 1e9 windows or more: their weights would not fit the segment. */
OPSCOPE_API int opscope_recorder_set_sampling(double sampling_prob, uint64_t window_ns,
                                              uint64_t period_ns);

/* Lays wishes over what the recorder was configured with, as a control block would
 * (opscope/segment.h; of `wish` the fields up to label_keys), but under its own: the process finds
 * them as it begins. ERR_INVALID, nothing changed, where one is out of its range: *out_refused has
 * the bits of those. */
OPSCOPE_API int opscope_recorder_inherit(const opscope_control *wish, uint64_t *out_refused);

/* Writes a fact about the process into the segment ("bridge.numpy", "attached"); a later value
 * replaces an earlier one. ERR_NOT_FOUND where no recorder runs. */
OPSCOPE_API int opscope_recorder_note(const char *key, const char *value);

/* For bindings and bridges: ranges of this operator cost `extra_ps` picoseconds more to record than
 * the recorder measures of a call from C, for what is around that call only while it is recorded.
 * Goes into what is told of the overhead, and into what it is kept to. From any thread, whether a
 * recorder runs or not; the first word holds, and only if it comes before the operator's first
 * recorded range. */
OPSCOPE_API void opscope_recorder_extra_cost(uint32_t op_id, uint64_t extra_ps);

/* For tests and for drivers with a clock of their own: a window by hand. Every range opened
 * between begin and end is recorded with `weight` (1 to 1e9). Only while windows are on. */
OPSCOPE_API int opscope_recorder_window_begin(double weight);
OPSCOPE_API int opscope_recorder_window_end(void);

OPSCOPE_END_DECLS

#endif
