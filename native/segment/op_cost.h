/* segment/op_cost.h -- the extra cost of recording a range of an operator, beyond the cost of every
 * range.
 *
 * An operator's extra cost is settled once per process and written into its dictionary entry, so a
 * reader of the file computes the same sum as this process. A forked child has its parent's extra
 * costs.
 */
#ifndef OPSCOPE_SEGMENT_OP_COST_H
#define OPSCOPE_SEGMENT_OP_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Extra costs above this, in picoseconds, are rejected as wrong. */
#define OPSCOPE__COST_LIMIT_PS 20000000u

/* Sets the extra cost of that operator, in picoseconds; has no effect once it is settled. */
void opscope__op_cost_set(uint32_t op_id, uint64_t extra_ps);
/* That operator's extra cost arises also while ranges are only counted (recorder/cost_compare.h).
 */
void opscope__op_cost_set_counted(uint32_t op_id);
bool opscope__op_cost_is_counted(uint32_t op_id);
/* While ranges are only counted, one costs this share of a recorded one on average: from 0, which
 * is so unless set, to 1. */
void opscope__op_cost_set_few(uint32_t op_id, double share);
double opscope__op_cost_few(uint32_t op_id);
/* A bridge counts that operator's ranges itself while they are only counted. */
void opscope__op_cost_set_bridge_counts(uint32_t op_id);
bool opscope__op_cost_bridge_counts(uint32_t op_id);
/* For the dictionary: settles the extra cost and returns it, in picoseconds. */
uint32_t opscope__op_cost_settle(uint32_t op_id);
/* The extra cost of an operator that has a cell; its cost is therefore settled. */
uint32_t opscope__op_cost_extra(uint32_t op_id);

#endif
