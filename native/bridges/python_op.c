/* python_op.c -- interns the operators of calls from Python, with the cost of their ranges. */
#include "bridges/python_op.h"

#include "opscope/recorder.h"

/* A typical value of the machines measured so far. */
static uint64_t cost_ps = 35000; /* under the GIL */

const opscope_op *opscope__python_op(const char *name)
{
    const opscope_op *op = opscope_op_other();
    if (opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op) == OPSCOPE_OK) {
        opscope_recorder_extra_cost(op->id, cost_ps);
    }
    return op;
}

void opscope__python_op_set_cost(uint64_t extra_ps)
{
    cost_ps = extra_ps;
}
