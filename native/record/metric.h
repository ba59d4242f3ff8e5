/* record/metric.h -- where metrics count: in the segment, while there is one. All with the segment
 * lock held. */
#ifndef OPSCOPE_RECORD_METRIC_H
#define OPSCOPE_RECORD_METRIC_H

#include "record/segment.h"

/* A new segment: from now on metrics count there, as far as there is room. */
void opscope__metrics_open(opscope__segment *segment);
/* Before its memory goes: back into the process's own. */
void opscope__metrics_close(void);

/* Around a fork: the child's values are those of the moment before, whatever the parent adds to the
 * memory that they still share. */
void opscope__metrics_fork_prepare(void);
void opscope__metrics_fork_child(void);

#endif
