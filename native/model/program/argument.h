/* model/program/argument.h -- values as arguments of operators. */
#ifndef OPSCOPE_MODEL_PROGRAM_ARGUMENT_H
#define OPSCOPE_MODEL_PROGRAM_ARGUMENT_H

#include "model/program/code.h"

/* How many items of 8 bytes the argument needs memory for; 0: none. */
size_t opscope__argument_items(const struct opscope__given *given,
                               const struct opscope__value *value);
/* The value as an argument, with a list in `memory`. Lowering has compared the types. */
void opscope__argument_fill(const struct opscope__given *given, const struct opscope__value *value,
                            void *memory, opscope_argument *out);

#endif
