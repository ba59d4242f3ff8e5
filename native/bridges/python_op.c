/* python_op.c -- interns the operators of calls from Python, with the cost of their ranges. */
#include "bridges/python_op.h"

#include "base/atomics.h"
#include "opscope/recorder.h"
#include "recorder/cost.h"

/* A typical value of the machines measured so far. */
static const uint64_t USUAL_PS = 35000;

/* 0: not known yet. Written by attach; read by any thread, also at the first call of a ufunc's
 * method. */
static uint64_t cost_ps;

static const opscope_op *intern(const char *name, opscope_scope scope)
{
    const opscope_op *op = opscope_op_other();
    if (opscope_op_intern(name, "", scope, OPSCOPE_OTHER, &op) == OPSCOPE_OK) {
        opscope_recorder_extra_cost(op->id, opscope__load_relaxed(&cost_ps)); /* partner: below */
    }
    return op;
}

const opscope_op *opscope__python_op(const char *name)
{
    return intern(name, OPSCOPE_FUNCTION);
}

const opscope_op *opscope__python_outer_op(const char *name)
{
    return intern(name, OPSCOPE_USER_SCOPE);
}

bool opscope__python_op_has_cost(void)
{
    return opscope__load_relaxed(&cost_ps) != 0; /* partner: below */
}

void opscope__python_op_set_cost(uint64_t extra_ps)
{
    /* partner: the loads above */
    opscope__store_relaxed(&cost_ps, extra_ps != 0 ? extra_ps : USUAL_PS);
}
