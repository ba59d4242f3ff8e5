/* blas/slots.h -- trampolines in place of functions of BLAS and LAPACK. Its callers take turns. */
#ifndef OPSCOPE_BRIDGES_BLAS_SLOTS_H
#define OPSCOPE_BRIDGES_BLAS_SLOTS_H

#include <stdbool.h>

#include "bridges/blas/routines.h"
#include "opscope/record.h"

typedef void (*opscope__blas_function)(void); /* of any signature */

/* The trampoline for calls of `original`, which that symbol names: always the same one. Its ranges
 * are of `op`; NULL: of the operator that the symbol names. NULL: no trampoline is left. It stays
 * valid for ever. */
opscope__blas_function opscope__blas_trampoline(const struct opscope__blas_symbol *symbol,
                                                opscope__blas_function original,
                                                const opscope_op *op);
/* Sets the cost of a range beyond the recorder's own part, before any operator is interned. */
void opscope__blas_set_cost(uint64_t extra_ps);

/* Whether calls through trampolines deliver all words on this machine, observed and unobserved. The
 * first call tries it, and sets the cost. */
bool opscope__blas_trial(void);

#endif
