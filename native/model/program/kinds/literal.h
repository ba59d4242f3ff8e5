/* model/program/kinds/literal.h -- numbers, read from texts as int() and float() read them. */
#ifndef OPSCOPE_MODEL_PROGRAM_LITERAL_H
#define OPSCOPE_MODEL_PROGRAM_LITERAL_H

#include "model/program/value.h"

/* ASCII digits alone: Python also takes those of other scripts. */
int opscope__literal_int(const struct opscope__text *text, int64_t *out);
int opscope__literal_float(const struct opscope__text *text, double *out);

#endif
