/* record/range.h -- the parts of record/range.c that the thread registry needs. */
#ifndef OPSCOPE_RECORD_RANGE_H
#define OPSCOPE_RECORD_RANGE_H

#include "record/thread.h"

void opscope__kept_ranges_free(struct opscope__kept_range *kept);
/* Frees the firings of `thread` (may be NULL), and of ended threads, that no range holds. */
void opscope__firing_sweep(struct opscope__thread *thread);

#endif
