/* blas/slots.h -- trampolines in place of functions of BLAS and LAPACK. Its callers take turns. */
#ifndef OPSCOPE_BRIDGES_BLAS_SLOTS_H
#define OPSCOPE_BRIDGES_BLAS_SLOTS_H

#include <stdbool.h>

#include "bridges/blas/routines.h"
#include "bridges/slot.h"
#include "opscope/record.h"

/* Returns the trampoline for calls of `original`, the function with that symbol: the same one at
 * each call, valid for ever; NULL if no trampoline is left. Its ranges have the operator `op`; with
 * NULL, the one that the symbol names. */
opscope__slot_function opscope__blas_trampoline(const struct opscope__blas_symbol *symbol,
                                                opscope__slot_function original,
                                                const opscope_op *op);
/* Sets the cost of a range beyond the recorder's own part, before any operator is interned. */
void opscope__blas_set_cost(uint64_t extra_ps);

/* Whether calls through trampolines deliver all words on this machine, observed and unobserved. The
 * first call runs the trial and sets the cost. */
bool opscope__blas_trial(void);

#endif
