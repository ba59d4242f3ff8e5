/* segment/op_cost.c -- see segment/op_cost.h. */
#include "segment/op_cost.h"

#include <stdbool.h>

#include "base/atomics.h"
#include "segment/segment.h"

/* NONE: settled without an extra cost. The operator "other" has ranges of all kinds, and no
 * dictionary entry. */
enum { OP_ID_LIMIT = 65536, UNSETTLED = 0 };
static const uint32_t NONE = UINT32_MAX;

/* By operator; relaxed, because no other memory depends on a value. Each changes once, from
 * UNSETTLED to its final value. */
static uint32_t extras[OP_ID_LIMIT + 1];

static uint8_t is_counted[OP_ID_LIMIT + 1];    /* relaxed: likewise */
static uint8_t bridge_counts[OP_ID_LIMIT + 1]; /* relaxed: likewise */
static uint8_t few[OP_ID_LIMIT + 1];           /* relaxed: of FEW_ONE; 0: not set */
static const double FEW_ONE = 255.0;

static uint32_t settle(uint32_t op_id, uint32_t extra)
{
    uint32_t found = UNSETTLED;
    /* Partner: the same exchange on other threads; the first one wins. */
    return opscope__replace_relaxed(&extras[op_id], &found, extra) ? extra : found;
}

void opscope__op_cost_set(uint32_t op_id, uint64_t extra_ps)
{
    if (op_id > OPSCOPE__OTHER_OP_ID && op_id <= OP_ID_LIMIT && extra_ps != 0 &&
        opscope__load_relaxed(&extras[op_id]) == UNSETTLED) {
        (void)settle(
            op_id, extra_ps < OPSCOPE__COST_LIMIT_PS ? (uint32_t)extra_ps : OPSCOPE__COST_LIMIT_PS);
    }
}

void opscope__op_cost_set_counted(uint32_t op_id)
{
    if (op_id <= OP_ID_LIMIT) {
        opscope__store_relaxed(&is_counted[op_id], (uint8_t)1);
    }
}

bool opscope__op_cost_is_counted(uint32_t op_id)
{
    return op_id <= OP_ID_LIMIT && opscope__load_relaxed(&is_counted[op_id]) != 0;
}

void opscope__op_cost_set_bridge_counts(uint32_t op_id)
{
    if (op_id <= OP_ID_LIMIT) {
        opscope__store_relaxed(&bridge_counts[op_id], (uint8_t)1);
    }
}

bool opscope__op_cost_bridge_counts(uint32_t op_id)
{
    return op_id <= OP_ID_LIMIT && opscope__load_relaxed(&bridge_counts[op_id]) != 0;
}

void opscope__op_cost_set_few(uint32_t op_id, double share)
{
    if (op_id <= OP_ID_LIMIT && share >= 0.0 && share <= 1.0) {
        opscope__store_relaxed(&few[op_id], (uint8_t)(share * FEW_ONE + 0.5));
    }
}

double opscope__op_cost_few(uint32_t op_id)
{
    return op_id <= OP_ID_LIMIT ? opscope__load_relaxed(&few[op_id]) / FEW_ONE : 0.0;
}

uint32_t opscope__op_cost_settle(uint32_t op_id)
{
    const uint32_t extra = op_id <= OP_ID_LIMIT ? settle(op_id, NONE) : NONE;
    return extra != NONE ? extra : 0;
}

uint32_t opscope__op_cost_extra(uint32_t op_id)
{
    const uint32_t extra = op_id <= OP_ID_LIMIT ? opscope__load_relaxed(&extras[op_id]) : NONE;
    return extra != NONE ? extra : 0;
}
