/* model/program/lower.h -- the parts of lowering: from nodes to instructions.
 *
 * Each function checks what it lowers: a failure names node, input and types. All return 0 or the
 * status of a failure that they have reported.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_LOWER_H
#define OPSCOPE_MODEL_PROGRAM_LOWER_H

#include "model/program/emit.h"

/* A node without blocks (lower_node.c). */
int opscope__lower_node(struct opscope__emitter *emitter, const struct opscope__graph_node *node);
/* The whole body, with its If and Loop (lower.c). */
int opscope__lower_graph(struct opscope__emitter *emitter);

/* A constant of that type, which the verifier has compared with it (constant.c). Lists in it are
 * counted by `heap`, which is to stay. */
int opscope__constant_value(struct opscope__heap *heap,
                            const struct opscope__graph_constant *constant,
                            const struct opscope__graph_type *type, struct opscope__value *out);
/* Frees all that opscope__constant_value has made. */
void opscope__constant_free(struct opscope__value *value);

/* The row of the table for a node of a kind py::NAME (match.c). */
int opscope__match_kind(const struct opscope__graph_node *node, const struct opscope__kind **out);

/* Lowers a node of an operator (plan.c). */
int opscope__lower_call(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                        const opscope_operator *op);
void opscope__call_plan_free(struct opscope__call_plan *plan); /* NULL is allowed */
/* Whether all uses of a constant list are arguments of operators, which never change it. */
bool opscope__is_argument_only(const struct opscope__graph_value *value);

/* prim::Fork and prim::Wait (lower_task.c). */
int opscope__lower_fork(struct opscope__emitter *emitter, const struct opscope__graph_node *node);
int opscope__lower_wait(struct opscope__emitter *emitter, const struct opscope__graph_node *node);
bool opscope__type_has_future(const struct opscope__graph_type *type);
/* Fails for futures among what a program takes and returns. */
int opscope__check_futures(const struct opscope__graph_block *body);

#endif
