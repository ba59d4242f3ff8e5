/* model/program/show.h -- values as Python shows them. */
#ifndef OPSCOPE_MODEL_PROGRAM_SHOW_H
#define OPSCOPE_MODEL_PROGRAM_SHOW_H

#include <stdio.h>

#include "model/program/value.h"

enum { OPSCOPE__SHOWN_BYTES = 40 };

/* None, a bool, int or float as str() has it, a dtype by its name. */
void opscope__show_number(const struct opscope__value *value, char *out);
/* Values as print() writes them, except that of a tensor only the dtype and the sizes are written:
 * "Tensor(float32, [2, 3])". */
void opscope__show_line(FILE *file, const struct opscope__value *values, size_t count);

#endif
