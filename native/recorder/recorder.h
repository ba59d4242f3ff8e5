/* recorder/recorder.h -- what bridges report to the recorder. */
#ifndef OPSCOPE_RECORDER_RECORDER_H
#define OPSCOPE_RECORDER_RECORDER_H

#include "opscope/recorder.h"

/* Counts a range as dropped; call it if opscope__range_lose returned true. Takes the segment
 * lock. */
OPSCOPE_API void opscope__recorder_count_lost(void);

/* The outer ranges that the calling thread opens began at that reading of the processor's counter,
 * until the next call with 0. For a bridge that learns of a range only after it has begun. */
OPSCOPE_API void opscope__recorder_outer_began(uint64_t start_ticks);

#endif
