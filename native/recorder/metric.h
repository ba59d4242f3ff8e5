/* recorder/metric.h -- moves metrics into the segment and out of it. Call everything with the
 * segment lock held. */
#ifndef OPSCOPE_RECORDER_METRIC_H
#define OPSCOPE_RECORDER_METRIC_H

#include "segment/segment.h"

/* For a new segment: metrics count there from now on, as far as there is room. */
void opscope__metrics_open(opscope__segment *segment);
/* Before the segment's memory is released: moves the values back into the process. */
void opscope__metrics_close(void);

/* Around a fork: the child gets the values of the moment before the fork, whatever the parent adds
 * to the memory that they still share. */
void opscope__metrics_fork_prepare(void);
void opscope__metrics_fork_child(void);

#endif
