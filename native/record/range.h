/* record/range.h -- the parts of record/range.c that the thread registry needs. */
#ifndef OPSCOPE_RECORD_RANGE_H
#define OPSCOPE_RECORD_RANGE_H

#include "record/thread.h"

/* The least ticks that `count` ranges of `op` took in a few rounds, were `spec` the only callback;
 * 0 where that could not be measured. No registered callback sees these ranges. */
uint64_t opscope__range_cost_ticks(const opscope_callback *spec, const opscope_op *op,
                                   uint32_t count);

void opscope__kept_ranges_free(struct opscope__kept_range *kept);
/* Frees the firings of `thread` (may be NULL), and of ended threads, that no range holds. */
void opscope__firing_sweep(struct opscope__thread *thread);

#endif
