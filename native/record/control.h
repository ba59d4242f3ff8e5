/* record/control.h -- what an operator wants of the running recorder, from outside (the control
 * block of opscope/segment.h), and the governor: who looks, when, and how it takes effect.
 *
 * No thread is added for it. Who looks is whoever comes by:
 *   windows       the thread that opens them (record/window.c), at least every OPSCOPE__LOOK_NS
 *   probability   a thread that records, about ten times a second; one that skips ranges, as its
 *                 countdown never goes past the next look (record/firing.c)
 *   off           nothing is called at ranges, so that they cost nothing: the thread of the windows
 *                 listens, made for it where there was none
 * So a process by probability hears at its next range, and one that runs none has nothing to
 * change.
 *
 * One thread at a time: the lock of the settings is tried, and left alone where it is taken. A look
 * is called with no lock held, perhaps from within a range of a framework whose callbacks the
 * change then adds or removes; it never waits for ranges to end.
 *
 * Forks: the child goes on with what was in force, as its inheritance, and has a block of its own.
 */
#ifndef OPSCOPE_RECORD_CONTROL_H
#define OPSCOPE_RECORD_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/segment.h"

struct opscope__recorder;

enum { OPSCOPE__LOOK_NS = 250000000, OPSCOPE__LOOKS_PER_SECOND = 10 };

/* Takes in what is new, and lets the governor judge. */
void opscope__control_look(void);
/* The same from a range, where it costs next to nothing if there is nothing new. Returns when this
 * thread is to look again. `header`: of a segment of this process, as it is or
 * was; NULL where the thread has none, and the segment lock is taken. */
uint64_t opscope__control_poll(const opscope_segment_header *header, uint64_t now_ticks);
/* Whether a look would find something new; takes the segment lock. */
bool opscope__control_is_news(void);

/* With the settings lock held: puts into force what is wanted now, after a change of what was
 * configured or inherited; on failure nothing has changed. */
int opscope__control_refresh(struct opscope__recorder *recorder);
/* With the settings and the segment lock, or in a child alone: the segment is new, with an empty
 * block; what was in force is its inheritance. */
void opscope__control_start(struct opscope__recorder *recorder);

#endif
