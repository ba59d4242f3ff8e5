/* segment/reclaim.h -- removes segments of ended processes. */
#ifndef OPSCOPE_SEGMENT_RECLAIM_H
#define OPSCOPE_SEGMENT_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>

/* Removes segments of ended processes, oldest first, until `bytes` are free. If all of them would
 * free less, removes nothing and returns false. */
bool opscope__reclaim(int directory_fd, uint64_t bytes, uint64_t *discarded_count);

#endif
