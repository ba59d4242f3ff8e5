/* record/range.h -- what the files about ranges (range.c, values.c, kept_range.c) and the thread
 * registry need of each other. */
#ifndef OPSCOPE_RECORD_RANGE_H
#define OPSCOPE_RECORD_RANGE_H

#include "record/thread.h"

/* The least ticks that `count` ranges of `op` took in a few rounds, were `spec` the only callback;
 * 0 where that could not be measured. No registered callback sees these ranges. */
uint64_t opscope__range_cost_ticks(const opscope_callback *spec, const opscope_op *op,
                                   uint32_t count);

/* What `failed` of a range says. */
enum { OPSCOPE__FAILED = 1, OPSCOPE__LOST = 2 };

/* The end of this range will not come on the thread that opened it: the recorder leaves it out.
 * True where it had the range: then the caller says so by opscope__recorder_count_lost. The range
 * is to be closed all the same, by its own thread when that gets to it, so that callbacks get their
 * ends. On that thread, or on another while that one can neither close the range nor end. Takes no
 * lock. */
OPSCOPE_API bool opscope__range_lose(opscope_range *range);

/* Leaves `into` empty where memory runs out: the callback then sees no values. */
void opscope__values_box(struct opscope__values *into, opscope_box fill, void *arg);

void opscope__kept_ranges_free(struct opscope__kept_range *kept);
/* Frees the firings of `thread` (may be NULL), and of ended threads, that no range holds. */
void opscope__firing_sweep(struct opscope__thread *thread);

#endif
