/* model/graph/verifier.h -- the parts of the verifier: each returns 0, or the status of a failure
 * that it has reported. */
#ifndef OPSCOPE_MODEL_GRAPH_VERIFIER_H
#define OPSCOPE_MODEL_GRAPH_VERIFIER_H

#include "model/graph/graph.h"

/* A value as the text form names it: "%x". */
struct opscope__graph_value_label {
    char text[88];
};
struct opscope__graph_value_label opscope__graph_value_label(
    const struct opscope__graph_value *value);
/* "%3 = aten::add: ..."; a node that produces nothing is "aten::add(%x)", NULL is "graph". */
int opscope__graph_verify_fail(const struct opscope__graph_node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The links between nodes, blocks, values and uses (verify_links.c). */
int opscope__graph_verify_links(struct opscope__model_graph *graph);
/* What a node of its kind has to be (verify_kind.c). */
int opscope__graph_verify_kind(const struct opscope__graph_node *node);

#endif
