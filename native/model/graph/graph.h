/* model/graph/graph.h -- the intermediate representation of models: one SSA graph.
 *
 * A graph has a body, which is a block. A block has inputs, nodes in order, and returns values. A
 * node applies an operator, named by its kind, to values and produces values; a node for control
 * flow (prim::If, prim::Loop) has blocks. A value is produced once, by a node or as the input of a
 * block, and knows all its uses.
 *
 * The graph owns all memory and frees it at once; what an edit removes stays allocated until then.
 * One thread at a time uses a graph. Functions that return a pointer return NULL, and others a
 * negative status, after a failure whose text is in opscope_tensor_error().
 *
 * Not here: what operators mean. A graph that these functions made may be wrong; verify.h checks
 * it.
 */
#ifndef OPSCOPE_MODEL_GRAPH_H
#define OPSCOPE_MODEL_GRAPH_H

#include "model/graph/constant.h"
#include "model/graph/memory.h"
#include "model/graph/type.h"

enum {
    OPSCOPE__GRAPH_DEPTH_LIMIT = 64,     /* blocks in blocks, the body included */
    OPSCOPE__GRAPH_ATTRIBUTE_LIMIT = 64, /* of one node */
    OPSCOPE__GRAPH_USUAL_BYTES = 1 << 28
};

struct opscope__graph_attribute {
    const char *name;
    struct opscope__graph_constant value;
};

/* One place where a value is used: an input of a node, or a value that a block returns. */
struct opscope__graph_use {
    struct opscope__graph_value *value;
    struct opscope__graph_node *node;    /* NULL: the block returns it */
    struct opscope__graph_block *block;  /* that returns it; NULL: the node takes it */
    struct opscope__graph_use *previous; /* of the same value */
    struct opscope__graph_use *next;
};

struct opscope__graph_uses {
    struct opscope__graph_use *at;
    uint32_t count;
};

struct opscope__graph_values {
    struct opscope__graph_value **at;
    uint32_t count;
};

struct opscope__graph_value {
    const struct opscope__graph_type *type;
    const char *name;                   /* NULL: printed as its number */
    struct opscope__graph_node *node;   /* that produces it; NULL: an input of `block` */
    struct opscope__graph_block *block; /* NULL: an output of `node` */
    uint32_t index;                     /* among these inputs or outputs */
    uint32_t number;                    /* of opscope__graph_number: in the order of the text */
    bool in_scope;                      /* the verifier's own */
    struct opscope__graph_use *first_use;
};

struct opscope__graph_node {
    struct opscope__model_graph *graph;
    struct opscope__graph_block *block; /* it is in; NULL: destroyed */
    struct opscope__graph_node *previous;
    struct opscope__graph_node *next;
    const char *kind;
    const char *location; /* of the source; NULL: unknown */
    const char *scope;    /* the module that runs it; NULL: unknown */
    struct opscope__graph_uses inputs;
    struct opscope__graph_values outputs;
    struct opscope__graph_attribute *attributes;
    uint32_t attribute_count;
    uint32_t block_count;
    struct opscope__graph_block **blocks;
};

struct opscope__graph_block {
    struct opscope__model_graph *graph;
    struct opscope__graph_node *owner; /* NULL: the body */
    uint32_t depth;                    /* blocks around it, itself included */
    struct opscope__graph_node *first;
    struct opscope__graph_node *last;
    struct opscope__graph_values inputs;
    struct opscope__graph_uses outputs;
};

/* An empty graph that takes at most that much memory, give or take an allocation of the arena. */
OPSCOPE_API struct opscope__model_graph *opscope__graph_new(size_t bytes_limit);
OPSCOPE_API void opscope__graph_release(struct opscope__model_graph *graph); /* NULL is allowed */

/* ---- adding ------------------------------------------------------------------------------- */

/* A node without inputs and outputs at the end of a block, and one before another node. */
OPSCOPE_API struct opscope__graph_node *opscope__graph_append(struct opscope__graph_block *block,
                                                              const char *kind, size_t bytes);
OPSCOPE_API struct opscope__graph_node *opscope__graph_insert_before(
    struct opscope__graph_node *place, const char *kind, size_t bytes);
/* A further output of a node, or input of a block. */
OPSCOPE_API struct opscope__graph_value *opscope__graph_add_output(
    struct opscope__graph_node *node, const struct opscope__graph_type *type);
OPSCOPE_API struct opscope__graph_value *opscope__graph_add_input(
    struct opscope__graph_block *block, const struct opscope__graph_type *type);
/* A further block of a node. */
OPSCOPE_API struct opscope__graph_block *opscope__graph_add_block(struct opscope__graph_node *node);
/* The inputs of a node, or what a block returns, instead of those before. */
OPSCOPE_API int opscope__graph_set_inputs(struct opscope__graph_node *node,
                                          struct opscope__graph_value *const *values, size_t count);
OPSCOPE_API int opscope__graph_set_outputs(struct opscope__graph_block *block,
                                           struct opscope__graph_value *const *values,
                                           size_t count);

/* ---- texts and attributes (name.h has the rules) -------------------------------------------- */

OPSCOPE_API int opscope__graph_set_name(struct opscope__model_graph *graph,
                                        struct opscope__graph_value *value, const char *name,
                                        size_t bytes);
OPSCOPE_API int opscope__graph_set_location(struct opscope__graph_node *node, const char *text,
                                            size_t bytes);
OPSCOPE_API int opscope__graph_set_scope(struct opscope__graph_node *node, const char *text,
                                         size_t bytes);
/* Adds the attribute, or changes its value. The node takes over the constant, whose memory has to
 * be the graph's. */
OPSCOPE_API int opscope__graph_set_attribute(struct opscope__graph_node *node, const char *name,
                                             size_t bytes, struct opscope__graph_constant value);
/* NULL: the node has no such attribute. */
OPSCOPE_API const struct opscope__graph_constant *opscope__graph_attribute(
    const struct opscope__graph_node *node, const char *name);

/* ---- changing ------------------------------------------------------------------------------- */

/* Lets one use take another value. */
OPSCOPE_API void opscope__graph_replace_use(struct opscope__graph_use *use,
                                            struct opscope__graph_value *value);
/* Lets all uses of `old` take `value`. */
OPSCOPE_API void opscope__graph_replace_uses(struct opscope__graph_value *old,
                                             struct opscope__graph_value *value);
/* Moves a node before another, also of another block, but not into itself. */
OPSCOPE_API int opscope__graph_move_before(struct opscope__graph_node *node,
                                           struct opscope__graph_node *place);
/* Removes a node, of whose outputs none is used, with its blocks. What is in them must be used in
 * them alone, as in each graph that the verifier accepts. */
OPSCOPE_API int opscope__graph_remove(struct opscope__graph_node *node);

/* Numbers all values in the order of the text, from 0; returns how many there are. */
OPSCOPE_API uint32_t opscope__graph_number(struct opscope__model_graph *graph);

#endif
