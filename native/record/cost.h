/* record/cost.h -- what recording costs, and has cost so far.
 *
 * The recorder measures at its start what a range costs when it is opened and closed with nothing
 * in between (record_cost_ps). One that a framework tells of costs more: its way to the recorder
 * comes on top, for PyTorch's several times as much. Whoever makes such operators says so, by
 * opscope_recorder_extra_cost, with the difference: that holds whatever the recorder measures later
 * or has measured before.
 *
 * An operator's extra cost is decided once in a process, and is in its entry in the dictionary: a
 * reader of the file so comes to the same sum as this process. A forked child has its parent's.
 */
#ifndef OPSCOPE_RECORD_COST_H
#define OPSCOPE_RECORD_COST_H

#include <stdint.h>

#include "record/segment.h"

/* No extra cost above this is believed, picoseconds. */
#define OPSCOPE__COST_LIMIT_PS 20000000u

/* For the dictionary: what holds from now on. */
uint32_t opscope__cost_settle(uint32_t op_id);

/* With the segment lock held: what recording all ranges of the segment has cost so far. It is what
 * a reader computes: samples times (record_cost_ps plus their operator's extra), summed, rounded
 * down. */
uint64_t opscope__cost_of_samples_ns(const opscope__segment *segment);

#endif
