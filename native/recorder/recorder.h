/* recorder/recorder.h -- what bridges report to the recorder. */
#ifndef OPSCOPE_RECORDER_RECORDER_H
#define OPSCOPE_RECORDER_RECORDER_H

#include "opscope/recorder.h"

/* Counts a range as dropped; call it if opscope__range_lose returned true. Takes the segment
 * lock. */
OPSCOPE_API void opscope__recorder_count_lost(void);

#endif
