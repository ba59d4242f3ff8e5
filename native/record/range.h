/* record/range.h -- shared by the files about ranges: range.c, values.c, heap_range.c. */
#ifndef OPSCOPE_RECORD_RANGE_H
#define OPSCOPE_RECORD_RANGE_H

#include "record/thread.h"

/* The fewest ticks, over a few rounds, that `count` ranges of `op` take with `spec` as the only
 * callback; 0 if the measurement failed. No registered callback sees these ranges. */
uint64_t opscope__range_cost_ticks(const opscope_callback *spec, const opscope_op *op,
                                   uint32_t count);

/* Bits of a range's `failed`. */
enum { OPSCOPE__FAILED = 1, OPSCOPE__LOST = 2 };

/* The end of this range will not come on the thread that opened it: the recorder leaves the range
 * out. Returns true if a leaf was recording the range; the caller then counts it as lost. The
 * opening thread must still close the range as soon as it can, so that callbacks get their ends.
 * Call this on that thread, or on another one while the opening thread can neither close the range
 * nor end. Takes no lock. */
OPSCOPE_API bool opscope__range_lose(opscope_range *range);

/* If memory runs out, `into` stays empty: the callback then sees no values. */
void opscope__values_box(struct opscope__values *into, opscope_box fill, void *arg);

#endif
