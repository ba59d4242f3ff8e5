/* recorder/off_cpu.h -- how long the main thread had no processor within ranges that windows
 * recorded.
 *
 * The kernel stops a thread for its CPU quota, or for another process. Such a stop lasts many times
 * as long as most operators. A window rarely meets one, and then counts it as often as its weight,
 * so the stops that windows have met are the least certain part of self times. The kernel tells
 * everybody how long a thread has waited for a processor altogether. A reader that knows which part
 * of the estimates is stops can therefore replace that part by each operator's share of the whole.
 *
 * A stop makes a range long, or the time between two ranges. Only after half a millisecond of
 * either does the thread read its CPU clock, which takes 0.2 us. What passed since the last reading
 * and was not CPU time is the off-CPU time of the range that ends, or of the one around the gap. So
 * is the reading itself, because the kernel likes to stop the thread there: it counts the thread's
 * CPU time, and finds it used up. Beside other programs, when a range began before its reading,
 * one operator of a microsecond that follows long gaps had 56 % of all self time instead of 7 %. At
 * other times, outside of windows, and with every range recorded, the clock is never read.
 *
 * An operator may also wait by itself, for a disk, a lock or other threads. Neither this thread nor
 * the window's can tell that from a stop without another system call, which a sandboxed program may
 * forbid (segment/sandbox.h). The reader can: it knows how long the thread slept. It knows so of a
 * process's main thread, whose id is the process's, so only the main thread measures.
 */
#ifndef OPSCOPE_RECORDER_OFF_CPU_H
#define OPSCOPE_RECORDER_OFF_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "recorder/state.h"

/* The calling thread is the main one: when the library is loaded, if it is, and after a fork. */
void opscope__off_cpu_note_main(void);
/* The calling thread gets a table of a new segment. Returns whether it is the main thread. */
bool opscope__off_cpu_begin_segment(void);

/* A window opens: from now on the main thread measures. */
void opscope__off_cpu_measure(struct opscope__recorder *recorder);

/* Cold: a range begins after a long gap; its frame then begins after the reading. Returns
 * OPSCOPE_OK, as the beginning does. */
int opscope__off_cpu_begin(struct opscope__recorder_thread *state, struct opscope__frame *frame);
/* Cold: a long range of a window ends. Returns the off-CPU time since the last reading, in ticks,
 * and moves `now`, by the processor's counter, to after this one. */
uint64_t opscope__off_cpu_end(const struct opscope__recorder_thread *state, uint64_t *now);
/* Cold: it took so many ticks, and `off_ticks` is what the former returned. What is inside a range
 * that outlasts its window may be in no range, and then its self time is unknown: so is what that
 * would contain of off-CPU time. */
void opscope__off_cpu_ended(struct opscope__recorder_thread *state,
                            const struct opscope__frame *frame, uint64_t ticks, uint64_t off_ticks);

/* The part of a key's estimates: multiplied by the windows' weights, in ticks. Of an outer range:
 * `total_ticks`, of the estimates for the ranges directly inside. */
struct opscope__off_cpu_of {
    uint64_t key;
    uint64_t self_ticks, total_ticks;
    uint64_t count; /* of ranges with such self time, without weights */
};

/* The i-th key of the segment with that epoch; false beyond the last one. On any thread. */
bool opscope__off_cpu_read(uint32_t epoch, size_t i, struct opscope__off_cpu_of *out);

#endif
