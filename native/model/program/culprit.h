/* model/program/culprit.h -- which function of a model it is that cannot run. */
#ifndef OPSCOPE_MODEL_PROGRAM_CULPRIT_H
#define OPSCOPE_MODEL_PROGRAM_CULPRIT_H

#include "model/program/program.h"

/* After opscope__program_new has failed: the name of the function whose own nodes are wrong, and
 * not those of a function that it calls; the error is then that of this function. NULL if there is
 * no such function as the entry. */
const char *opscope__program_culprit(const struct opscope__program_source *source);

#endif
