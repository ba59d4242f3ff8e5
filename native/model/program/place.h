/* model/program/place.h -- the failures of a run: what graphs raise, and where. */
#ifndef OPSCOPE_MODEL_PROGRAM_PLACE_H
#define OPSCOPE_MODEL_PROGRAM_PLACE_H

#include "model/graph/graph.h"

/* Adds the place of a node to this thread's last failure: where the source has it, or which value
 * it makes. */
void opscope__place_failure(const struct opscope__graph_node *node);
/* Fails as a graph says: `name` is that of an exception of Python. Returns a negative status. */
int opscope__raise(const char *text, const char *name);
/* Fails because an input is not of the type of this value. */
int opscope__refuse_input(const struct opscope__graph_value *wanted);

#endif
