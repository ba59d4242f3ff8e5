/* tests/native/model/random_graph.h -- random valid graphs for tests.
 *
 * They use tensors, ints, bools and lists of two tensors, in blocks of up to three levels. Inputs
 * are chosen among the newest values, so that many nodes are equal. The operators are those that
 * run_graph.h runs.
 */
#ifndef OPSCOPE_TESTS_RANDOM_GRAPH_H
#define OPSCOPE_TESTS_RANDOM_GRAPH_H

#include "graph_texts.h"

enum { RANDOM_TENSOR, RANDOM_INT, RANDOM_BOOL, RANDOM_LIST, RANDOM_TYPES };
enum { RANDOM_LEVELS = 3, RANDOM_SCOPE = 400 };

struct random_graph {
    uint64_t state;
    struct opscope__model_graph *graph;
    const struct opscope__graph_type *types[RANDOM_TYPES];
    struct opscope__graph_value *scope[RANDOM_TYPES][RANDOM_SCOPE];
    int counts[RANDOM_TYPES];
    bool changes; /* it has in-place operators */
    unsigned named;
};

static inline unsigned random_below(struct random_graph *random, unsigned limit)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return (unsigned)((random->state >> 20) % limit);
}

/* Gives the value a name or not, and lets later nodes take it. */
static inline struct opscope__graph_value *random_see(struct random_graph *random, int type,
                                                      struct opscope__graph_value *value)
{
    char name[20];
    CHECK(value != NULL && random->counts[type] < RANDOM_SCOPE);
    if (random_below(random, 3) == 0) {
        int bytes = snprintf(name, sizeof name, "v.%u", random->named++);
        CHECK_EQUAL(opscope__graph_set_name(random->graph, value, name, (size_t)bytes), OPSCOPE_OK);
    }
    random->scope[type][random->counts[type]++] = value;
    return value;
}

static inline struct opscope__graph_value *random_value(struct random_graph *random, int type)
{
    int count = random->counts[type], newest = count < 4 ? count : 4;
    return random->scope[type][count - 1 - (int)random_below(random, (unsigned)newest)];
}

static inline struct opscope__graph_node *random_node(struct random_graph *random,
                                                      struct opscope__graph_block *block,
                                                      const char *kind)
{
    struct opscope__graph_node *node = opscope__graph_append(block, kind, strlen(kind));
    CHECK(node != NULL);
    if (random_below(random, 8) == 0) {
        CHECK_EQUAL(opscope__graph_set_location(node, "net.py:3:4", 10), OPSCOPE_OK);
        CHECK_EQUAL(opscope__graph_set_scope(node, "net/fc", 6), OPSCOPE_OK);
    }
    return node;
}

/* An operator from its line: "kind inputs outputs", types as in "TIBL". */
static inline void random_operator(struct random_graph *random, struct opscope__graph_block *block,
                                   const char *line)
{
    static const char letters[] = "TIBL";
    char kind[40], inputs[8], outputs[8];
    struct opscope__graph_value *values[8];
    CHECK_EQUAL(sscanf(line, "%39s %7s %7s", kind, inputs, outputs), 3);
    struct opscope__graph_node *node = random_node(random, block, kind);
    size_t count = inputs[0] == '-' ? 0 : strlen(inputs);
    for (size_t i = 0; i < count; i++) {
        values[i] = random_value(random, (int)(strchr(letters, inputs[i]) - letters));
    }
    CHECK_EQUAL(opscope__graph_set_inputs(node, values, count), OPSCOPE_OK);
    for (const char *at = outputs; *at != '\0' && *at != '-'; at++) {
        int type = (int)(strchr(letters, *at) - letters);
        random_see(random, type, opscope__graph_add_output(node, random->types[type]));
    }
}

static inline void random_constant(struct random_graph *random, struct opscope__graph_block *block)
{
    bool is_int = random_below(random, 3) > 0;
    struct opscope__graph_constant value = {.kind = is_int ? OPSCOPE__GRAPH_CONSTANT_INT
                                                           : OPSCOPE__GRAPH_CONSTANT_BOOL};
    if (is_int) {
        value.as.integer = (int64_t)random_below(random, 4) - 1;
    } else {
        value.as.boolean = random_below(random, 2) == 0;
    }
    struct opscope__graph_node *node = random_node(random, block, "prim::Constant");
    CHECK_EQUAL(opscope__graph_set_attribute(node, "value", 5, value), OPSCOPE_OK);
    int type = is_int ? RANDOM_INT : RANDOM_BOOL;
    random_see(random, type, opscope__graph_add_output(node, random->types[type]));
}

static void random_nodes(struct random_graph *random, struct opscope__graph_block *block,
                         int level);

/* Fills a block of a node, and lets it return `first` (of the type; -1: nothing) and one value of
 * each of the types. */
static inline void random_block(struct random_graph *random, struct opscope__graph_block *block,
                                int level, int first, const int *types, size_t count)
{
    struct opscope__graph_value *values[4];
    size_t returned = 0;
    int before[RANDOM_TYPES];
    memcpy(before, random->counts, sizeof before);
    for (uint32_t i = 0; i < block->inputs.count; i++) {
        random_see(random, i == 0 ? RANDOM_INT : types[i - 1], block->inputs.at[i]);
    }
    random_nodes(random, block, level);
    if (first >= 0) {
        values[returned++] = random_value(random, first);
    }
    for (size_t i = 0; i < count; i++) {
        values[returned++] = random_value(random, types[i]);
    }
    CHECK_EQUAL(opscope__graph_set_outputs(block, values, returned), OPSCOPE_OK);
    memcpy(random->counts, before, sizeof before);
}

static inline void random_control(struct random_graph *random, struct opscope__graph_block *block,
                                  int level)
{
    bool is_loop = random_below(random, 2) == 0;
    int types[2];
    size_t count = random_below(random, 3), taken = 0;
    struct opscope__graph_value *values[4];
    struct opscope__graph_node *node =
        random_node(random, block, is_loop ? "prim::Loop" : "prim::If");
    if (is_loop) {
        values[taken++] = random_value(random, RANDOM_INT);
    }
    values[taken++] = random_value(random, RANDOM_BOOL);
    for (size_t i = 0; i < count; i++) {
        types[i] = (int)random_below(random, RANDOM_TYPES);
        if (is_loop) {
            values[taken++] = random_value(random, types[i]);
        }
    }
    CHECK_EQUAL(opscope__graph_set_inputs(node, values, taken), OPSCOPE_OK);
    for (int i = 0; i < (is_loop ? 1 : 2); i++) {
        struct opscope__graph_block *inner = opscope__graph_add_block(node);
        CHECK(inner != NULL);
        if (is_loop) {
            CHECK(opscope__graph_add_input(inner, random->types[RANDOM_INT]) != NULL);
        }
        for (size_t j = 0; is_loop && j < count; j++) {
            CHECK(opscope__graph_add_input(inner, random->types[types[j]]) != NULL);
        }
        random_block(random, inner, level + 1, is_loop ? RANDOM_BOOL : -1, types, count);
    }
    for (size_t i = 0; i < count; i++) {
        random_see(random, types[i], opscope__graph_add_output(node, random->types[types[i]]));
    }
}

static void random_nodes(struct random_graph *random, struct opscope__graph_block *block, int level)
{
    static const char *const operators[] = {
        "aten::add II I",        "aten::mul II I",
        "aten::neg I I",         "aten::lt II B",
        "aten::relu T T",        "aten::neg T T",
        "aten::add TT T",        "aten::relu T T",
        "aten::view T T",        "aten::item T I",
        "aten::dropout T T",     "prim::ListConstruct TT L",
        "prim::ListUnpack L TT", "aten::cat L T",
        "aten::mul.Tensor TT T", "prim::ListConstruct TT L",
        "aten::rand - I",        "prim::Print I -",
        "aten::add_ TT T",
    };
    enum { COUNT = sizeof operators / sizeof *operators };
    unsigned nodes = random_below(random, level == 0 ? 25 : 8);
    for (unsigned i = 0; i < nodes; i++) {
        unsigned which = random_below(random, COUNT + 4);
        if (which >= COUNT + 2 && level + 1 < RANDOM_LEVELS) {
            random_control(random, block, level);
        } else if (which >= COUNT) {
            random_constant(random, block);
        } else if (which < COUNT - 1 || random->changes) {
            random_operator(random, block, operators[which]);
        }
    }
}

/* A graph of two tensors, two ints and a bool, that returns some of all it computes. */
static inline struct opscope__model_graph *random_graph(uint64_t seed)
{
    static const int inputs[] = {RANDOM_TENSOR, RANDOM_TENSOR, RANDOM_INT, RANDOM_INT, RANDOM_BOOL};
    struct random_graph random = {.state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1,
                                  .graph = opscope__graph_new(OPSCOPE__GRAPH_USUAL_BYTES)};
    CHECK(random.graph != NULL);
    random.changes = seed % 3 == 0;
    random.types[RANDOM_TENSOR] = opscope__graph_simple_type(OPSCOPE__GRAPH_TENSOR);
    random.types[RANDOM_INT] = opscope__graph_simple_type(OPSCOPE__GRAPH_INT);
    random.types[RANDOM_BOOL] = opscope__graph_simple_type(OPSCOPE__GRAPH_BOOL);
    random.types[RANDOM_LIST] =
        opscope__graph_type_of(random.graph, OPSCOPE__GRAPH_LIST, &random.types[RANDOM_TENSOR], 1);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        random_see(&random, inputs[i],
                   opscope__graph_add_input(random.graph->body, random.types[inputs[i]]));
    }
    random_operator(&random, random.graph->body, "prim::ListConstruct TT L");
    random_nodes(&random, random.graph->body, 0);
    struct opscope__graph_value *outputs[4];
    size_t count = random_below(&random, 5);
    for (size_t i = 0; i < count; i++) {
        outputs[i] = random_value(&random, (int)random_below(&random, RANDOM_TYPES));
    }
    CHECK_EQUAL(opscope__graph_set_outputs(random.graph->body, outputs, count), OPSCOPE_OK);
    return random.graph;
}

#endif
