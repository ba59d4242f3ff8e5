/* model/graph/passes/fuse_elementwise.c -- see the header.
 *
 * From the last node of a block to the first: an elementwise node that is in no group yet is the
 * root of one. A group takes in the node behind one of its inputs if that is elementwise, all its
 * uses are in the group, and no node between it and the root may change a value: its operator will
 * run at the root's place.
 */
#include "model/graph/passes/fuse_elementwise.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/effect.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

static const char FUSED[] = "prim::Fused";

struct pass {
    bool (*is_elementwise)(const char *kind);
    uint32_t
        *changes; /* by the number of a value: nodes before it in the text that may change one */
    size_t fused;
};

struct group {
    struct opscope__graph_node *nodes[OPSCOPE__GRAPH_FUSED_NODES]; /* the root first */
    size_t count;
    struct opscope__graph_value *inputs[OPSCOPE__GRAPH_FUSED_INPUTS];
    size_t input_count;
};

static bool is_candidate(const struct pass *pass, const struct opscope__graph_node *node)
{
    if (node->outputs.count != 1 || node->block_count != 0 ||
        node->inputs.count > OPSCOPE_ARGUMENT_LIMIT ||
        node->outputs.at[0]->type->kind != OPSCOPE__GRAPH_TENSOR ||
        !pass->is_elementwise(node->kind)) {
        return false;
    }
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        const uint8_t kind = node->inputs.at[i].value->type->kind;
        if (kind != OPSCOPE__GRAPH_TENSOR && kind != OPSCOPE__GRAPH_INT &&
            kind != OPSCOPE__GRAPH_FLOAT && kind != OPSCOPE__GRAPH_BOOL) {
            return false;
        }
    }
    return true;
}

static bool contains(const struct group *group, const struct opscope__graph_node *node)
{
    for (size_t i = 0; i < group->count; i++) {
        if (group->nodes[i] == node) {
            return true;
        }
    }
    return false;
}

static bool is_used_by_group_alone(const struct group *group,
                                   const struct opscope__graph_value *value)
{
    for (const struct opscope__graph_use *use = value->first_use; use != NULL; use = use->next) {
        if (use->node == NULL || !contains(group, use->node)) {
            return false;
        }
    }
    return true;
}

/* Lists the values that the group takes from outside. False: too many. */
static bool find_inputs(struct group *group)
{
    group->input_count = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct opscope__graph_uses *inputs = &group->nodes[i]->inputs;
        for (uint32_t k = 0; k < inputs->count; k++) {
            struct opscope__graph_value *value = inputs->at[k].value;
            size_t at = 0;
            while (at < group->input_count && group->inputs[at] != value) {
                at++;
            }
            if (contains(group, value->node) || at < group->input_count) {
                continue;
            }
            if (group->input_count == OPSCOPE__GRAPH_FUSED_INPUTS) {
                return false;
            }
            group->inputs[group->input_count++] = value;
        }
    }
    return true;
}

static bool can_take(const struct pass *pass, const struct group *group,
                     const struct opscope__graph_node *node)
{
    const struct opscope__graph_node *root = group->nodes[0];
    return node != NULL && node->block == root->block && !contains(group, node) &&
           group->count < OPSCOPE__GRAPH_FUSED_NODES && is_candidate(pass, node) &&
           pass->changes[node->outputs.at[0]->number] ==
               pass->changes[root->outputs.at[0]->number] &&
           is_used_by_group_alone(group, node->outputs.at[0]);
}

/* Takes in what it can, until nothing is left to take. */
static void grow(const struct pass *pass, struct group *group)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct opscope__graph_uses *inputs = &group->nodes[i]->inputs;
        for (uint32_t k = 0; k < inputs->count; k++) {
            struct opscope__graph_node *node = inputs->at[k].value->node;
            if (!can_take(pass, group, node)) {
                continue;
            }
            group->nodes[group->count++] = node;
            if (!find_inputs(group)) {
                group->count--;
                (void)find_inputs(group);
            }
        }
    }
}

static int in_order_of_text(const void *one, const void *other)
{
    const uint32_t a = (*(struct opscope__graph_node *const *)one)->outputs.at[0]->number;
    const uint32_t b = (*(struct opscope__graph_node *const *)other)->outputs.at[0]->number;
    return (a > b) - (a < b);
}

/* Copies a node of the group to the end of the block; `inside[i]` is the value inside of the value
 * `outside[i]`. */
static struct opscope__graph_value *copy_node(struct opscope__graph_block *block,
                                              const struct opscope__graph_node *node,
                                              struct opscope__graph_value *const *outside,
                                              struct opscope__graph_value *const *inside)
{
    struct opscope__graph_value *inputs[OPSCOPE_ARGUMENT_LIMIT];
    struct opscope__graph_node *copy = opscope__graph_append(block, node->kind, strlen(node->kind));
    if (copy == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < node->inputs.count; i++) {
        size_t at = 0;
        while (outside[at] != node->inputs.at[i].value) {
            at++;
        }
        inputs[i] = inside[at];
    }
    copy->location = node->location;
    copy->scope = node->scope;
    if (opscope__graph_set_inputs(copy, inputs, node->inputs.count) != OPSCOPE_OK) {
        return NULL;
    }
    return opscope__graph_add_output(copy, node->outputs.at[0]->type);
}

/* Fills in the new node. NULL: no memory, reported. */
static struct opscope__graph_value *fill(struct group *group, struct opscope__graph_node *made)
{
    struct opscope__graph_value *outside[OPSCOPE__GRAPH_FUSED_INPUTS + OPSCOPE__GRAPH_FUSED_NODES];
    struct opscope__graph_value *inside[OPSCOPE__GRAPH_FUSED_INPUTS + OPSCOPE__GRAPH_FUSED_NODES];
    struct opscope__graph_node *const root = group->nodes[0];
    struct opscope__graph_block *block = opscope__graph_add_block(made);
    size_t count = 0;
    if (block == NULL ||
        opscope__graph_set_inputs(made, group->inputs, group->input_count) != OPSCOPE_OK) {
        return NULL;
    }
    for (; count < group->input_count; count++) {
        outside[count] = group->inputs[count];
        inside[count] = opscope__graph_add_input(block, outside[count]->type);
        if (inside[count] == NULL) {
            return NULL;
        }
    }
    qsort(group->nodes, group->count, sizeof *group->nodes, in_order_of_text);
    for (size_t i = 0; i < group->count; i++, count++) {
        outside[count] = group->nodes[i]->outputs.at[0];
        inside[count] = copy_node(block, group->nodes[i], outside, inside);
        if (inside[count] == NULL) {
            return NULL;
        }
    }
    made->location = root->location;
    made->scope = root->scope;
    if (opscope__graph_set_outputs(block, &inside[count - 1], 1) != OPSCOPE_OK) {
        return NULL;
    }
    return opscope__graph_add_output(made, root->outputs.at[0]->type);
}

/* The node that replaces the group; NULL: no memory, reported, and the group stays. */
static struct opscope__graph_node *replace(struct pass *pass, struct group *group)
{
    struct opscope__graph_node *const root = group->nodes[0];
    struct opscope__graph_node *made = opscope__graph_insert_before(root, FUSED, sizeof FUSED - 1);
    struct opscope__graph_value *result = made != NULL ? fill(group, made) : NULL;
    if (result == NULL) {
        if (made != NULL) {
            (void)opscope__graph_remove(made);
        }
        return NULL;
    }
    struct opscope__graph_value *before = root->outputs.at[0];
    result->name = before->name;
    result->number = before->number;
    before->name = NULL;
    opscope__graph_replace_uses(before, result);
    for (size_t i = group->count; i > 0; i--) { /* each after all that use it */
        (void)opscope__graph_remove(group->nodes[i - 1]);
    }
    pass->fused++;
    return made;
}

static bool visit_block(struct pass *pass, struct opscope__graph_block *block)
{
    struct opscope__graph_node *previous;
    for (struct opscope__graph_node *node = block->last; node != NULL; node = previous) {
        for (uint32_t i = 0; i < node->block_count && strcmp(node->kind, FUSED) != 0; i++) {
            if (!visit_block(pass, node->blocks[i])) {
                return false;
            }
        }
        struct group group = {.nodes = {node}, .count = 1};
        if (is_candidate(pass, node) && find_inputs(&group)) {
            grow(pass, &group);
            if (group.count > 1) {
                node = replace(pass, &group);
                if (node == NULL) {
                    return false;
                }
            }
        }
        previous = node->previous;
    }
    return true;
}

/* Sets `changes` for the values of the block and returns how many nodes so far may change one. */
static uint32_t count_changes(const struct pass *pass, const struct opscope__graph_block *block,
                              uint32_t count)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        for (uint32_t i = 0; i < node->outputs.count; i++) {
            pass->changes[node->outputs.at[i]->number] = count;
        }
        for (uint32_t i = 0; i < node->block_count; i++) {
            count = count_changes(pass, node->blocks[i], count);
        }
        count += opscope__graph_node_effect(node) == OPSCOPE__GRAPH_CHANGES;
    }
    return count;
}

int opscope__graph_fuse_elementwise(struct opscope__model_graph *graph,
                                    bool (*is_elementwise)(const char *kind), size_t *fused)
{
    struct pass pass = {.is_elementwise = is_elementwise};
    const size_t values = opscope__graph_number(graph);
    pass.changes = calloc(values > 0 ? values : 1, sizeof *pass.changes);
    if (pass.changes == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    (void)count_changes(&pass, graph->body, 0);
    const bool done = visit_block(&pass, graph->body);
    free(pass.changes);
    *fused = pass.fused;
    return done ? OPSCOPE_OK : opscope__graph_failed();
}
