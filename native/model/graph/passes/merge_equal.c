/* model/graph/passes/merge_equal.c -- merges nodes that compute the same.
 *
 * Two nodes are equal if their kinds, inputs, attributes and the types of their outputs are. The
 * first one's outputs replace the second one's, if the second is in the same block behind it, or in
 * a block inside that. The pass leaves alone:
 *
 * - nodes with an effect or with blocks;
 * - in a graph in which any node may change a value, as in-place operators do, all nodes that take
 *   or produce what can be changed: tensors, lists, modules. Which values share memory is not known
 *   there, so the change could come between any two nodes. Nodes that take nothing are left alone
 *   too, except constants;
 * - two nodes of which both produce something changeable that the graph may return, be it as a view
 *   or in a list: the caller gets separate values, and may change one of them. A value is taken for
 *   one that may be returned unless operators that share no memory with it are its only users.
 *   prim::GetAttr is exempt, because it produces the same value each time;
 * - a node in an inner block that produces such a value, if the first is outside: in a loop, each
 *   trip makes a value of its own, and the graph may return those of several trips.
 */
#include "model/graph/passes/merge_equal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/graph/buffer.h"
#include "model/graph/effect.h"
#include "model/graph/memory.h"
#include "model/graph/name_map.h"
#include "model/graph/sharing.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

/* Entries of a bucket that are compared. Only a graph that was made for it has more in one. */
enum { TRIES = 100 };

struct entry {
    struct opscope__graph_node *node;
    uint64_t hash;
    size_t next; /* in the same bucket: its index + 1; 0: the last one */
    bool escapes;
};

struct pass {
    bool may_change;                      /* a node of the graph may change values */
    size_t *buckets;                      /* index + 1 of the newest entry; 0: empty */
    size_t bucket_count;                  /* a power of two */
    struct opscope__graph_buffer entries; /* of the blocks that are open */
    size_t merged;
};

/* ---- which nodes are equal ------------------------------------------------------------------ */

static uint64_t hash_constant(uint64_t hash, const struct opscope__graph_constant *value)
{
    hash = opscope__graph_hash(hash, &value->kind, sizeof value->kind);
    switch (value->kind) {
    case OPSCOPE__GRAPH_CONSTANT_BOOL:
        return opscope__graph_hash(hash, &value->as.boolean, sizeof value->as.boolean);
    case OPSCOPE__GRAPH_CONSTANT_INT:
        return opscope__graph_hash(hash, &value->as.integer, sizeof value->as.integer);
    case OPSCOPE__GRAPH_CONSTANT_FLOAT:
        return isnan(value->as.real)
                   ? hash
                   : opscope__graph_hash(hash, &value->as.real, sizeof value->as.real);
    case OPSCOPE__GRAPH_CONSTANT_STRING:
        return opscope__graph_hash(hash, value->as.text, value->count);
    case OPSCOPE__GRAPH_CONSTANT_LIST:
        for (uint32_t i = 0; i < value->count; i++) {
            hash = hash_constant(hash, &value->as.items[i]);
        }
        return hash;
    default:
        return hash;
    }
}

static uint64_t hash_type(uint64_t hash, const struct opscope__graph_type *type)
{
    hash = opscope__graph_hash(hash, &type->kind, sizeof type->kind);
    if (type->kind == OPSCOPE__GRAPH_CLASS) {
        return opscope__graph_hash(hash, type->name, strlen(type->name));
    }
    for (uint32_t i = 0; i < type->count; i++) {
        hash = hash_type(hash, type->parts[i]);
    }
    return hash;
}

static uint64_t hash_node(const struct opscope__graph_node *node)
{
    uint64_t hash = opscope__graph_hash(OPSCOPE__GRAPH_HASH_START, node->kind, strlen(node->kind));
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        uint32_t number = node->inputs.at[i].value->number;
        hash = opscope__graph_hash(hash, &number, sizeof number);
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        hash = hash_constant(hash, &node->attributes[i].value);
    }
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        hash = hash_type(hash, node->outputs.at[i]->type);
    }
    return hash;
}

/* Attributes in another order are taken for different ones. */
static bool is_equal(const struct opscope__graph_node *one, const struct opscope__graph_node *other)
{
    if (strcmp(one->kind, other->kind) != 0 || one->inputs.count != other->inputs.count ||
        one->outputs.count != other->outputs.count ||
        one->attribute_count != other->attribute_count) {
        return false;
    }
    for (uint32_t i = 0; i < one->inputs.count; i++) {
        if (one->inputs.at[i].value != other->inputs.at[i].value) {
            return false;
        }
    }
    for (uint32_t i = 0; i < one->outputs.count; i++) {
        if (!opscope__graph_type_equal(one->outputs.at[i]->type, other->outputs.at[i]->type)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < one->attribute_count; i++) {
        if (strcmp(one->attributes[i].name, other->attributes[i].name) != 0 ||
            !opscope__graph_constant_equal(&one->attributes[i].value,
                                           &other->attributes[i].value)) {
            return false;
        }
    }
    return true;
}

/* ---- which nodes are left alone ------------------------------------------------------------- */

static bool are_immutable(const struct opscope__graph_values *values)
{
    for (uint32_t i = 0; i < values->count; i++) {
        if (!opscope__graph_is_immutable(values->at[i]->type)) {
            return false;
        }
    }
    return true;
}

/* Without inputs, it is a constant, or it asks for something that may change. */
static bool takes_immutable(const struct opscope__graph_node *node)
{
    if (node->inputs.count == 0) {
        return strcmp(node->kind, "prim::Constant") == 0;
    }
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        if (!opscope__graph_is_immutable(node->inputs.at[i].value->type)) {
            return false;
        }
    }
    return true;
}

static bool is_candidate(const struct pass *pass, const struct opscope__graph_node *node)
{
    return node->block_count == 0 && node->outputs.count > 0 &&
           opscope__graph_node_effect(node) == OPSCOPE__GRAPH_PURE &&
           (!pass->may_change || (are_immutable(&node->outputs) && takes_immutable(node)));
}

/* Whether something changeable that the node takes may be part of what it produces. */
static bool passes_on(const struct opscope__graph_node *node)
{
    return node->block_count > 0 ||
           (!opscope__graph_is_fresh(node) && !are_immutable(&node->outputs));
}

/* Whether the graph may return, as it is or in part, a changeable value that the node produces. */
static bool escapes(const struct opscope__graph_node *node)
{
    if (strcmp(node->kind, "prim::GetAttr") == 0) {
        return false;
    }
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        const struct opscope__graph_value *value = node->outputs.at[i];
        if (opscope__graph_is_immutable(value->type)) {
            continue;
        }
        const struct opscope__graph_node *last = NULL;
        for (const struct opscope__graph_use *use = value->first_use; use != NULL;
             use = use->next) {
            if (use->node == NULL || (use->node != last && passes_on(use->node))) {
                return true;
            }
            last = use->node;
        }
    }
    return false;
}

/* ---- the walk ------------------------------------------------------------------------------- */

static struct entry *entry_at(const struct pass *pass, size_t index)
{
    return (struct entry *)(void *)pass->entries.at + index;
}

static size_t entry_count(const struct pass *pass)
{
    return pass->entries.bytes / sizeof(struct entry);
}

static bool add_entry(struct pass *pass, const struct entry *entry)
{
    size_t *bucket = &pass->buckets[entry->hash & (pass->bucket_count - 1)];
    struct entry added = *entry;
    added.next = *bucket;
    if (!opscope__graph_buffer_push(&pass->entries, &added, sizeof added)) {
        return false;
    }
    *bucket = entry_count(pass);
    return true;
}

/* The newest entries are the first of their buckets. */
static void drop_entries(struct pass *pass, size_t count)
{
    while (entry_count(pass) > count) {
        const struct entry *entry = entry_at(pass, entry_count(pass) - 1);
        pass->buckets[entry->hash & (pass->bucket_count - 1)] = entry->next;
        pass->entries.bytes -= sizeof *entry;
    }
}

/* The outputs of `node` are not used afterwards. */
static void merge(struct pass *pass, struct opscope__graph_node *first,
                  struct opscope__graph_node *node)
{
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        opscope__graph_replace_uses(node->outputs.at[i], first->outputs.at[i]);
    }
    (void)opscope__graph_remove(node);
    pass->merged++;
}

static bool visit_node(struct pass *pass, struct opscope__graph_node *node)
{
    struct entry entry = {.node = node, .hash = hash_node(node), .escapes = escapes(node)};
    size_t index = pass->buckets[entry.hash & (pass->bucket_count - 1)];
    for (int tries = 0; index > 0 && tries < TRIES; tries++) {
        struct entry *first = entry_at(pass, index - 1);
        if (first->hash == entry.hash && is_equal(first->node, node)) {
            if (entry.escapes && first->node->block != node->block) {
                break;
            }
            if (entry.escapes && first->escapes) {
                return true;
            }
            first->escapes = first->escapes || entry.escapes;
            merge(pass, first->node, node);
            return true;
        }
        index = first->next;
    }
    return add_entry(pass, &entry);
}

static bool visit_block(struct pass *pass, struct opscope__graph_block *block)
{
    size_t before = entry_count(pass);
    struct opscope__graph_node *next;
    for (struct opscope__graph_node *node = block->first; node != NULL; node = next) {
        next = node->next;
        for (uint32_t i = 0; i < node->block_count; i++) {
            if (!visit_block(pass, node->blocks[i])) {
                return false;
            }
        }
        if (is_candidate(pass, node) && !visit_node(pass, node)) {
            return false;
        }
    }
    drop_entries(pass, before);
    return true;
}

int opscope__graph_merge_equal(struct opscope__model_graph *graph, size_t *merged)
{
    struct pass pass = {
        .may_change = opscope__graph_block_effect(graph->body) == OPSCOPE__GRAPH_CHANGES,
        .bucket_count = 16};
    size_t values = opscope__graph_number(graph);
    while (pass.bucket_count < values) {
        pass.bucket_count *= 2;
    }
    pass.buckets = calloc(pass.bucket_count, sizeof *pass.buckets);
    if (pass.buckets == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    bool done = visit_block(&pass, graph->body);
    free(pass.buckets);
    free(pass.entries.at);
    if (!done) {
        return opscope__graph_failed();
    }
    *merged = pass.merged;
    return OPSCOPE_OK;
}
