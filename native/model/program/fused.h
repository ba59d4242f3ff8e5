/* model/program/fused.h -- nodes prim::Fused, which run several operators in one pass over memory.
 *
 * The operators of a fused node run by tensor/kernels/fused.h where the inputs allow it, in one
 * range "core::fused" whose overload names them. Else, and where a gradient is to be recorded, the
 * program runs the node's block as it stands.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_FUSED_H
#define OPSCOPE_MODEL_PROGRAM_FUSED_H

#include "model/graph/graph.h"
#include "model/program/value.h"

struct opscope__fused_call;

/* Whether an operator of that name can be fused. */
bool opscope__is_fusible(const char *kind);
/* The call of a node that the verifier accepts. `*out` is NULL for a block that can only be run as
 * it stands. 0 or a negative status. */
int opscope__fused_call_new(const struct opscope__graph_node *node,
                            struct opscope__fused_call **out);
void opscope__fused_call_free(struct opscope__fused_call *call); /* NULL is allowed */
/* Runs it. 1, with a new reference in `*out`; 0: run the block instead; or a negative status.
 * `inputs`: of the node. `spare`: one of them that may be the result, or NULL. */
int opscope__fused_call_run(const struct opscope__fused_call *call,
                            const struct opscope__value *const *inputs, opscope_tensor *spare,
                            struct opscope__value *out);

#endif
