/* recorder/control.h -- applies settings from outside to the running recorder (the control block of
 * opscope/segment.h), and runs the governor: which thread polls, when, and how a change takes
 * effect.
 *
 * Polling needs no additional thread:
 *   windows       the thread that opens them (recorder/window.c), at least every two
 * OPSCOPE__POLL_NS probability   a thread that records, about ten times a second. A thread that
 * skips ranges polls too: its countdown never passes the next poll (record/snapshot.c) off ranges
 * call nothing, so they cost nothing: the window thread polls, and is started for this if necessary
 * The window thread starts at the program's first range. A process therefore sees a change at its
 * first range; a process that samples by probability, at its next range. A process without ranges
 * has nothing to change.
 *
 * Only one thread polls at a time, with a try-lock of the settings; other threads skip the poll. A
 * poll is called without locks. The caller may be inside a range of a framework whose callbacks the
 * change then adds or removes; a poll never waits for ranges to end.
 *
 * Forks: the child inherits the settings in force, and has a block of its own.
 */
#ifndef OPSCOPE_RECORDER_CONTROL_H
#define OPSCOPE_RECORDER_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/segment.h"

struct opscope__recorder;

/* The tracer, a layer above this one. */
struct opscope__trace_control {
    /* Starts a trace that another process requests, into `<segment_path>.trace`. With a duration of
     * 0, ends the trace that such a request started. Called without locks, except perhaps that of
     * the settings. */
    int (*start)(const char *segment_path, uint64_t serial, uint64_t duration_ns, uint64_t bytes,
                 uint64_t flags);
    /* Ends a trace whose deadline has passed; cheap without a trace. Locks as above. */
    void (*poll)(void);
};

/* Set in a constructor. */
extern const struct opscope__trace_control *opscope__trace_control;

/* Applies new settings, and runs the governor. */
void opscope__control_apply(void);
/* The same from a range; costs next to nothing if nothing is new. Returns the time of this thread's
 * next poll. `header` is that of a current or former segment of this process; with NULL, for a
 * thread that has none, the function takes the segment lock. */
uint64_t opscope__control_poll(const opscope_segment_header *header, uint64_t now_ticks);
/* True if a poll would find something new; takes the segment lock. */
bool opscope__control_is_news(void);

/* With the settings lock held: applies the current combination of layers, after a change of the
 * configured or inherited ones. On failure nothing changes. */
int opscope__control_refresh(struct opscope__recorder *recorder);
/* With the settings and the segment lock, or in a child with a single thread: the segment is new,
 * with an empty block; the settings in force become its inheritance. */
void opscope__control_start(struct opscope__recorder *recorder);

#endif
