/* python_op.h -- operators whose ranges are calls from Python into C functions, and the extra cost
 * of such a range beyond the recorder's own part: the path through a trampoline. */
#ifndef OPSCOPE_BRIDGES_PYTHON_OP_H
#define OPSCOPE_BRIDGES_PYTHON_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/record.h"

/* The operator of that name; `other` if there is no room. Any thread. */
const opscope_op *opscope__python_op(const char *name);
/* The same for an outer range around Python code, which windows follow from its start to its end.
 */
const opscope_op *opscope__python_outer_op(const char *name);
bool opscope__python_op_has_cost(void);
/* Sets the cost of the ranges of operators that are interned from now on, in picoseconds, as
 * measured in this process; 0: a typical one. */
void opscope__python_op_set_cost(uint64_t extra_ps);

#endif
