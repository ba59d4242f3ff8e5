/* model/graph/passes/peephole.c -- see the header.
 *
 * A rule gives a value that the node's only output can be replaced by. A tensor has the same
 * elements and shares its memory with the same tensors: x.t().t() is x, but -(-x), which has memory
 * of its own, is not. Only nodes take it instead, in a graph in which nothing changes a value: what
 * the graph returns stays, because the caller would get the graph's tensor in place of one of its
 * own.
 */
#include "model/graph/passes/peephole.h"

#include <string.h>

#include "model/graph/effect.h"
#include "model/graph/sharing.h"
#include "opscope/status.h"

struct pass {
    bool may_change; /* a node of the graph may change values, so lists are not followed */
    bool failed;     /* out of memory, reported */
    size_t changed;
};

typedef struct opscope__graph_value *(*rule)(const struct pass *pass,
                                             const struct opscope__graph_node *node);

/* ---- what a node takes -------------------------------------------------------------------------- */

static bool is_kind(const struct opscope__graph_node *node, const char *kind)
{
    return node != NULL && strcmp(node->kind, kind) == 0;
}

static struct opscope__graph_value *input(const struct opscope__graph_node *node, uint32_t index)
{
    return index < node->inputs.count ? node->inputs.at[index].value : NULL;
}

/* The node of that kind which produces an input; NULL: another one does. */
static const struct opscope__graph_node *before(const struct opscope__graph_node *node,
                                                uint32_t index, const char *kind)
{
    const struct opscope__graph_value *value = input(node, index);
    return value != NULL && is_kind(value->node, kind) ? value->node : NULL;
}

/* The value of an input that is a constant; NULL: it is none. */
static const struct opscope__graph_constant *constant(const struct opscope__graph_node *node,
                                                      uint32_t index)
{
    const struct opscope__graph_node *producer = before(node, index, "prim::Constant");
    return producer != NULL ? opscope__graph_attribute(producer, "value") : NULL;
}

static bool is_integer(const struct opscope__graph_constant *value)
{
    return value != NULL && value->kind == OPSCOPE__GRAPH_CONSTANT_INT;
}

/* ---- tensors -------------------------------------------------------------------------------------- */

/* x.t().t(): x */
static struct opscope__graph_value *twice_t(const struct pass *pass,
                                            const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_node *inner = before(node, 0, "core::t");
    return inner != NULL ? input(inner, 0) : NULL;
}

/* x.transpose(a, b).transpose(b, a): x. Dimensions are compared as they are written, because how
 * many there are is not known. */
static struct opscope__graph_value *twice_transpose(const struct pass *pass,
                                                    const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_node *inner = before(node, 0, "core::transpose");
    if (inner == NULL || !is_integer(constant(node, 1)) || !is_integer(constant(node, 2)) ||
        !is_integer(constant(inner, 1)) || !is_integer(constant(inner, 2))) {
        return NULL;
    }
    const int64_t a = constant(node, 1)->as.integer, b = constant(node, 2)->as.integer;
    const int64_t c = constant(inner, 1)->as.integer, d = constant(inner, 2)->as.integer;
    return (a == c && b == d) || (a == d && b == c) ? input(inner, 0) : NULL;
}

static bool is_dimension(const struct opscope__graph_constant *list, uint32_t index)
{
    const struct opscope__graph_constant *item = &list->as.items[index];
    return is_integer(item) && item->as.integer >= 0 && item->as.integer < list->count;
}

/* x.permute(p).permute(q), where q undoes p: x */
static struct opscope__graph_value *undone_permute(const struct pass *pass,
                                                   const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_node *inner = before(node, 0, "core::permute");
    const struct opscope__graph_constant *p = inner != NULL ? constant(inner, 1) : NULL;
    const struct opscope__graph_constant *q = constant(node, 1);
    if (p == NULL || q == NULL || p->kind != OPSCOPE__GRAPH_CONSTANT_LIST || p->kind != q->kind ||
        p->count != q->count) {
        return NULL;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        if (!is_dimension(p, i) || !is_dimension(q, i) ||
            p->as.items[q->as.items[i].as.integer].as.integer != i) {
            return NULL;
        }
    }
    return input(inner, 0);
}

/* x.unsqueeze(d).squeeze([d]): x */
static struct opscope__graph_value *undone_unsqueeze(const struct pass *pass,
                                                     const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_node *inner = before(node, 0, "core::unsqueeze");
    const struct opscope__graph_constant *added = inner != NULL ? constant(inner, 1) : NULL;
    const struct opscope__graph_constant *removed = constant(node, 1);
    if (!is_integer(added) || removed == NULL || removed->kind != OPSCOPE__GRAPH_CONSTANT_LIST ||
        removed->count != 1 || !is_integer(&removed->as.items[0]) ||
        removed->as.items[0].as.integer != added->as.integer) {
        return NULL;
    }
    return input(inner, 0);
}

/* x.contiguous().contiguous(): the first; the same for detach */
static struct opscope__graph_value *once_is_enough(const struct pass *pass,
                                                   const struct opscope__graph_node *node)
{
    (void)pass;
    return before(node, 0, node->kind) != NULL ? input(node, 0) : NULL;
}

/* dropout outside of training: its input */
static struct opscope__graph_value *dropout_of_nothing(const struct pass *pass,
                                                       const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_constant *p = constant(node, 1), *training = constant(node, 2);
    const bool is_valid = p != NULL && p->kind == OPSCOPE__GRAPH_CONSTANT_FLOAT &&
                          p->as.real >= 0.0 && p->as.real <= 1.0;
    const bool is_off =
        training != NULL && training->kind == OPSCOPE__GRAPH_CONSTANT_BOOL && !training->as.boolean;
    return is_valid && is_off ? input(node, 0) : NULL;
}

/* ---- Python's values ------------------------------------------------------------------------------ */

/* not not x: x */
static struct opscope__graph_value *twice_not(const struct pass *pass,
                                              const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_node *inner = before(node, 0, "py::not");
    return inner != NULL ? input(inner, 0) : NULL;
}

/* int(n) of an int, and the like, or an Unwrap of what cannot be None: n */
static struct opscope__graph_value *same_type(const struct pass *pass,
                                              const struct opscope__graph_node *node)
{
    (void)pass;
    struct opscope__graph_value *value = input(node, 0);
    return node->inputs.count == 1 &&
                   opscope__graph_type_equal(value->type, node->outputs.at[0]->type)
               ? value
               : NULL;
}

/* A part of a tuple that was just made */
static struct opscope__graph_value *part_of_tuple(const struct pass *pass,
                                                  const struct opscope__graph_node *node)
{
    (void)pass;
    const struct opscope__graph_node *made = before(node, 0, "prim::TupleConstruct");
    const struct opscope__graph_constant *index = opscope__graph_attribute(node, "index");
    return made != NULL && is_integer(index) && index->as.integer >= 0 &&
                   index->as.integer < made->inputs.count
               ? input(made, (uint32_t)index->as.integer)
               : NULL;
}

/* An item of a list that was just made and that nothing changes */
static struct opscope__graph_value *item_of_list(const struct pass *pass,
                                                 const struct opscope__graph_node *node)
{
    const struct opscope__graph_node *made = before(node, 0, "prim::ListConstruct");
    const struct opscope__graph_constant *index = constant(node, 1);
    if (pass->may_change || made == NULL || !is_integer(index)) {
        return NULL;
    }
    const int64_t count = made->inputs.count;
    const int64_t at = index->as.integer < 0 ? index->as.integer + count : index->as.integer;
    return at >= 0 && at < count ? input(made, (uint32_t)at) : NULL;
}

static const struct {
    const char *kind;
    rule rule;
} rules[] = {{"core::t", twice_t},
             {"core::transpose", twice_transpose},
             {"core::permute", undone_permute},
             {"core::squeeze", undone_unsqueeze},
             {"core::contiguous", once_is_enough},
             {"core::detach", once_is_enough},
             {"core::dropout", dropout_of_nothing},
             {"py::not", twice_not},
             {"py::int", same_type},
             {"py::float", same_type},
             {"py::bool", same_type},
             {"py::str", same_type},
             {"prim::Unwrap", same_type},
             {"prim::TupleIndex", part_of_tuple},
             {"py::getitem", item_of_list}};

static bool has_uses(const struct opscope__graph_value *value)
{
    return value->first_use != NULL;
}

/* Lets nodes without blocks take the value instead; whether there was one. */
static bool replace_in_nodes(struct opscope__graph_value *old, struct opscope__graph_value *value)
{
    bool any = false;
    struct opscope__graph_use *next;
    for (struct opscope__graph_use *use = old->first_use; use != NULL; use = next) {
        next = use->next;
        if (use->node != NULL && use->node->block_count == 0) {
            opscope__graph_replace_use(use, value);
            any = true;
        }
    }
    return any;
}

static void replace(struct pass *pass, struct opscope__graph_value *old,
                    struct opscope__graph_value *value)
{
    if (!opscope__graph_type_equal(value->type, old->type)) {
        return;
    }
    /* Others give the very tensor that they take. */
    if (strncmp(old->node->kind, "core::", 6) == 0 && !is_kind(old->node, "core::dropout")) {
        pass->changed += !pass->may_change && replace_in_nodes(old, value);
    } else {
        opscope__graph_replace_uses(old, value);
        pass->changed++;
    }
}

static void apply_rules(struct pass *pass, struct opscope__graph_node *node)
{
    if (node->outputs.count != 1 || !has_uses(node->outputs.at[0])) {
        return;
    }
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (!is_kind(node, rules[i].kind)) {
            continue;
        }
        struct opscope__graph_value *value = rules[i].rule(pass, node);
        if (value != NULL) {
            replace(pass, node->outputs.at[0], value);
        }
        return;
    }
}

/* ---- reshape -------------------------------------------------------------------------------------- */

/* Whether no memory of the value gets further than to the nodes that take it. */
static bool stays_inside(const struct opscope__graph_value *value)
{
    for (const struct opscope__graph_use *use = value->first_use; use != NULL; use = use->next) {
        if (use->node == NULL || !opscope__graph_is_fresh(use->node)) {
            return false;
        }
    }
    return true;
}

/* x.reshape(a).reshape(b): x.reshape(b). The first may be a copy, so the result may share memory
 * with x that it did not share before. */
static void join_reshapes(struct pass *pass, struct opscope__graph_node *node)
{
    const struct opscope__graph_node *inner = before(node, 0, "core::reshape");
    if (pass->may_change || inner == NULL || node->inputs.count != 2 || inner->inputs.count != 2 ||
        !stays_inside(node->outputs.at[0])) {
        return;
    }
    opscope__graph_replace_use(&node->inputs.at[0], input(inner, 0));
    pass->changed++;
}

/* ---- several outputs, and blocks -------------------------------------------------------------------- */

/* The parts of a tuple, or of a list, that was just made: its inputs. */
static void skip_unpacking(struct pass *pass, const struct opscope__graph_node *node)
{
    const bool is_list = is_kind(node, "prim::ListUnpack");
    const struct opscope__graph_node *made =
        before(node, 0, is_list ? "prim::ListConstruct" : "prim::TupleConstruct");
    if (made == NULL || made->inputs.count != node->outputs.count ||
        (is_list && pass->may_change)) {
        return;
    }
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        struct opscope__graph_value *part = node->outputs.at[i];
        if (has_uses(part) && opscope__graph_type_equal(part->type, input(made, i)->type)) {
            opscope__graph_replace_uses(part, input(made, i));
            pass->changed++;
        }
    }
}

/* An If whose condition is constant: the nodes of its block, in its place. */
static void take_branch(struct pass *pass, struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *condition = constant(node, 0);
    if (condition == NULL || condition->kind != OPSCOPE__GRAPH_CONSTANT_BOOL) {
        return;
    }
    struct opscope__graph_block *block = node->blocks[condition->as.boolean ? 0 : 1];
    while (block->first != NULL) {
        if (opscope__graph_move_before(block->first, node) != OPSCOPE_OK) {
            pass->failed = true;
            return;
        }
    }
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        opscope__graph_replace_uses(node->outputs.at[i], block->outputs.at[i].value);
    }
    (void)opscope__graph_remove(node);
    pass->changed++;
}

static void visit_block(struct pass *pass, struct opscope__graph_block *block)
{
    struct opscope__graph_node *next;
    for (struct opscope__graph_node *node = block->first; node != NULL && !pass->failed;
         node = next) {
        for (uint32_t i = 0; i < node->block_count; i++) {
            visit_block(pass, node->blocks[i]);
        }
        next = node->next;
        if (is_kind(node, "prim::If")) {
            take_branch(pass, node);
        } else if (is_kind(node, "prim::TupleUnpack") || is_kind(node, "prim::ListUnpack")) {
            skip_unpacking(pass, node);
        } else if (is_kind(node, "core::reshape")) {
            join_reshapes(pass, node);
        } else {
            apply_rules(pass, node);
        }
    }
}

int opscope__graph_peephole(struct opscope__model_graph *graph, size_t *changed)
{
    struct pass pass = {.may_change =
                            opscope__graph_block_effect(graph->body) == OPSCOPE__GRAPH_CHANGES};
    size_t changed_before;
    do {
        changed_before = pass.changed;
        visit_block(&pass, graph->body);
    } while (pass.changed > changed_before && !pass.failed);
    *changed = pass.changed;
    return pass.failed ? opscope__graph_failed() : OPSCOPE_OK;
}
