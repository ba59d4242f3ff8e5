/* tests/native/model/run_graph.h -- runs the graphs of random_graph.h on tensors of one number.
 *
 * A tensor is a cell, which in-place operators change and views share. What a run returns is one
 * number: of the values of all outputs, of which outputs and inputs share cells, of what the inputs
 * are afterwards, and of all that was printed.
 */
#ifndef OPSCOPE_TESTS_RUN_GRAPH_H
#define OPSCOPE_TESTS_RUN_GRAPH_H

#include "graph_texts.h"

struct run_value {
    int64_t number; /* of an int or bool */
    size_t cell;    /* of a tensor or list: which one it is */
    size_t items[2];
};

enum { RUN_VALUES = 2000, RUN_CELLS = 100000 };

struct run {
    struct run_value values[RUN_VALUES]; /* by the values' numbers */
    int64_t cells[RUN_CELLS];
    size_t cell_count;
    uint64_t printed;
    int64_t drawn; /* random numbers so far */
};

static inline uint64_t run_mix(uint64_t hash, uint64_t more)
{
    return (hash ^ more) * UINT64_C(0x9E3779B97F4A7C15) + (hash >> 29);
}

static inline size_t run_new_cell(struct run *run, uint64_t content)
{
    CHECK(run->cell_count < RUN_CELLS);
    run->cells[run->cell_count] = (int64_t)content;
    return run->cell_count++;
}

static inline struct run_value *run_of(struct run *run, const struct opscope__graph_value *value)
{
    CHECK(value->number < RUN_VALUES);
    return &run->values[value->number];
}

static void run_block(struct run *run, const struct opscope__graph_block *block);

static inline void run_if(struct run *run, const struct opscope__graph_node *node)
{
    bool is_true = run_of(run, node->inputs.at[0].value)->number != 0;
    const struct opscope__graph_block *block = node->blocks[is_true ? 0 : 1];
    run_block(run, block);
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        *run_of(run, node->outputs.at[i]) = *run_of(run, block->outputs.at[i].value);
    }
}

/* At most three trips. */
static inline void run_loop(struct run *run, const struct opscope__graph_node *node)
{
    const struct opscope__graph_block *block = node->blocks[0];
    int64_t trips = run_of(run, node->inputs.at[0].value)->number & 3;
    bool is_true = run_of(run, node->inputs.at[1].value)->number != 0;
    struct run_value carried[4];
    uint32_t count = node->outputs.count;
    for (uint32_t i = 0; i < count; i++) {
        carried[i] = *run_of(run, node->inputs.at[i + 2].value);
    }
    for (int64_t trip = 0; trip < trips && is_true; trip++) {
        run_of(run, block->inputs.at[0])->number = trip;
        for (uint32_t i = 0; i < count; i++) {
            *run_of(run, block->inputs.at[i + 1]) = carried[i];
        }
        run_block(run, block);
        is_true = run_of(run, block->outputs.at[0].value)->number != 0;
        for (uint32_t i = 0; i < count; i++) {
            carried[i] = *run_of(run, block->outputs.at[i + 1].value);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        *run_of(run, node->outputs.at[i]) = carried[i];
    }
}

static inline void run_fused(struct run *run, const struct opscope__graph_node *node)
{
    const struct opscope__graph_block *block = node->blocks[0];
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        *run_of(run, block->inputs.at[i]) = *run_of(run, node->inputs.at[i].value);
    }
    run_block(run, block);
    *run_of(run, node->outputs.at[0]) = *run_of(run, block->outputs.at[0].value);
}

static inline bool run_is(const struct opscope__graph_node *node, const char *kind)
{
    return strcmp(node->kind, kind) == 0;
}

/* The result of arithmetic: of ints, and of what tensors hold. */
static inline uint64_t run_compute(const struct opscope__graph_node *node, uint64_t a, uint64_t b)
{
    return run_is(node, "aten::neg")                                 ? 0 - a
           : run_is(node, "aten::relu")                              ? ((int64_t)a > 0 ? a : 0)
           : run_is(node, "aten::add") || run_is(node, "aten::add_") ? a + b
           : run_is(node, "aten::mul") || run_is(node, "aten::mul.Tensor") ? a * b
                                                                           : a * 31 + b;
}

static inline void run_operator(struct run *run, const struct opscope__graph_node *node,
                                const struct run_value *a, const struct run_value *b)
{
    struct run_value out = {0};
    const struct opscope__graph_type *type =
        node->outputs.count > 0 ? node->outputs.at[0]->type : NULL;
    if (run_is(node, "prim::Print")) {
        run->printed = run_mix(run->printed, (uint64_t)a->number);
        return;
    }
    if (run_is(node, "prim::ListUnpack")) {
        run_of(run, node->outputs.at[1])->cell = a->items[1];
        out.cell = a->items[0];
    } else if (run_is(node, "prim::ListConstruct")) {
        out = (struct run_value){0, run_new_cell(run, 0), {a->cell, b->cell}};
    } else if (run_is(node, "aten::cat")) {
        uint64_t first = (uint64_t)run->cells[a->items[0]];
        out.cell = run_new_cell(run, run_compute(node, first, (uint64_t)run->cells[a->items[1]]));
    } else if (run_is(node, "aten::view") || run_is(node, "aten::dropout")) {
        out.cell = a->cell;
    } else if (run_is(node, "aten::item")) {
        out.number = run->cells[a->cell];
    } else if (run_is(node, "aten::rand")) {
        out.number = ++run->drawn;
    } else if (run_is(node, "aten::lt")) {
        out.number = a->number < b->number;
    } else if (type->kind == OPSCOPE__GRAPH_TENSOR) {
        uint64_t result =
            run_compute(node, (uint64_t)run->cells[a->cell], (uint64_t)run->cells[b->cell]);
        if (run_is(node, "aten::add_")) {
            run->cells[a->cell] = (int64_t)result;
            out.cell = a->cell;
        } else {
            out.cell = run_new_cell(run, result);
        }
    } else {
        out.number = (int64_t)run_compute(node, (uint64_t)a->number, (uint64_t)b->number);
    }
    *run_of(run, node->outputs.at[0]) = out;
}

static inline void run_constant(struct run *run, const struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *value = opscope__graph_attribute(node, "value");
    run_of(run, node->outputs.at[0])->number =
        value->kind == OPSCOPE__GRAPH_CONSTANT_INT ? value->as.integer : value->as.boolean;
}

static void run_block(struct run *run, const struct opscope__graph_block *block)
{
    static const struct run_value nothing;
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        const struct opscope__graph_uses *inputs = &node->inputs;
        if (run_is(node, "prim::If")) {
            run_if(run, node);
        } else if (run_is(node, "prim::Loop")) {
            run_loop(run, node);
        } else if (run_is(node, "prim::Fused")) {
            run_fused(run, node);
        } else if (run_is(node, "prim::Constant")) {
            run_constant(run, node);
        } else {
            run_operator(run, node, inputs->count > 0 ? run_of(run, inputs->at[0].value) : &nothing,
                         inputs->count > 1 ? run_of(run, inputs->at[1].value) : &nothing);
        }
    }
}

/* Adds a value that the caller sees: numbers, and with which of the values before it shares a cell.
 */
static inline uint64_t run_see(const struct run *run, uint64_t hash, size_t *cells, size_t *count,
                               size_t cell)
{
    size_t same = 0;
    cells[*count] = cell;
    while (cells[same] != cell) {
        same++;
    }
    ++*count;
    return run_mix(run_mix(hash, same), (uint64_t)run->cells[cell]);
}

static inline uint64_t run_graph(struct opscope__model_graph *graph, uint64_t seed)
{
    static struct run run;
    size_t cells[40], count = 0;
    run.cell_count = 0;
    run.printed = 0;
    run.drawn = 0;
    opscope__graph_number(graph);
    const struct opscope__graph_values *inputs = &graph->body->inputs;
    const struct opscope__graph_uses *outputs = &graph->body->outputs;
    for (uint32_t i = 0; i < inputs->count; i++) {
        struct run_value *value = run_of(&run, inputs->at[i]);
        value->number = (int64_t)((seed >> i) & 1) + (i == 2 ? 2 : 0);
        value->cell = run_new_cell(&run, (seed >> i) % 7 - 3);
    }
    run_block(&run, graph->body);
    uint64_t hash = run_mix(run.printed, (uint64_t)run.drawn);
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (inputs->at[i]->type->kind == OPSCOPE__GRAPH_TENSOR) {
            hash = run_see(&run, hash, cells, &count, run_of(&run, inputs->at[i])->cell);
        }
    }
    for (uint32_t i = 0; i < outputs->count; i++) {
        const struct opscope__graph_value *value = outputs->at[i].value;
        const struct run_value *is = run_of(&run, value);
        if (value->type->kind == OPSCOPE__GRAPH_TENSOR ||
            value->type->kind == OPSCOPE__GRAPH_LIST) {
            hash = run_see(&run, hash, cells, &count, is->cell);
        } else {
            hash = run_mix(hash, (uint64_t)is->number);
        }
        for (size_t item = 0; value->type->kind == OPSCOPE__GRAPH_LIST && item < 2; item++) {
            hash = run_see(&run, hash, cells, &count, is->items[item]);
        }
    }
    return hash;
}

#endif
