/* model/graph/passes/inline_calls.c -- replaces calls of functions by their nodes.
 *
 * From the innermost functions outwards: what a function calls is inlined into it before it is
 * inlined itself, so that each function is visited once.
 */
#include "model/graph/passes/inline_calls.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/clone.h"
#include "model/graph/memory.h"
#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "model/graph/verify.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

struct function {
    const char *name;
    struct opscope__model_graph *given;
    struct opscope__model_graph *inlined; /* owned; NULL: not visited */
    bool is_open;                         /* its calls are being inlined */
};

struct inliner {
    struct function *functions; /* sorted by name */
    size_t count;
    size_t depth;
};

static int compare_names(const void *one, const void *other)
{
    return strcmp(((const struct function *)one)->name, ((const struct function *)other)->name);
}

static struct function *find(const struct inliner *inliner, const char *name)
{
    const struct function wanted = {.name = name};
    return inliner->count == 0
               ? NULL
               : bsearch(&wanted, inliner->functions, inliner->count, sizeof wanted, compare_names);
}

/* ---- one call ----------------------------------------------------------------------------------- */

static int check_call(const struct opscope__graph_node *node, const char *name,
                      const struct opscope__graph_block *body)
{
    if (node->block_count > 0) {
        return opscope__graph_verify_fail(node, "a call has no blocks");
    }
    if (node->inputs.count != body->inputs.count || node->outputs.count != body->outputs.count) {
        return opscope__graph_verify_fail(
            node, "%u inputs and %u outputs, where \"%.100s\" has %u and %u", node->inputs.count,
            node->outputs.count, name, body->inputs.count, body->outputs.count);
    }
    for (uint32_t i = 0; i < body->inputs.count; i++) {
        const struct opscope__graph_type *wanted = body->inputs.at[i]->type,
                                         *given = node->inputs.at[i].value->type;
        if (!opscope__graph_type_accepts(wanted, given)) {
            return opscope__graph_verify_fail(node, "input %u is %s, where \"%.100s\" takes %s", i,
                                              opscope__graph_show_type(given).text, name,
                                              opscope__graph_show_type(wanted).text);
        }
    }
    for (uint32_t i = 0; i < body->outputs.count; i++) {
        const struct opscope__graph_type *wanted = node->outputs.at[i]->type,
                                         *given = body->outputs.at[i].value->type;
        if (!opscope__graph_type_accepts(wanted, given)) {
            return opscope__graph_verify_fail(node, "output %u is %s, where \"%.100s\" returns %s",
                                              i, opscope__graph_show_type(wanted).text, name,
                                              opscope__graph_show_type(given).text);
        }
    }
    return OPSCOPE_OK;
}

static int replace_call(struct opscope__graph_node *node, const char *name,
                        struct opscope__model_graph *callee)
{
    const struct opscope__graph_block *body = callee->body;
    int status = check_call(node, name, body);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__graph_value **values =
        calloc((size_t)opscope__graph_number(callee) + 1, sizeof *values);
    if (values == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < body->inputs.count; i++) {
        values[body->inputs.at[i]->number] = node->inputs.at[i].value;
    }
    status = opscope__graph_clone_nodes(body, node->block, node, values, false);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < body->outputs.count; i++) {
        opscope__graph_replace_uses(node->outputs.at[i], values[body->outputs.at[i].value->number]);
    }
    free(values);
    return status == OPSCOPE_OK ? opscope__graph_remove(node) : status;
}

/* ---- the walk ----------------------------------------------------------------------------------- */

static int visit_block(struct inliner *inliner, struct opscope__graph_block *block);

/* No deeper than the limit of calls. */
static int visit_function(struct inliner *inliner, struct function *function)
{
    if (inliner->depth == OPSCOPE__CALL_DEPTH_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "calls in calls of more than %d levels",
                                   OPSCOPE__CALL_DEPTH_LIMIT);
    }
    int status = opscope__graph_verify(function->given);
    if (status == OPSCOPE_OK) {
        function->inlined = opscope__graph_clone(function->given);
        status = function->inlined != NULL ? OPSCOPE_OK : opscope__graph_failed();
    }
    if (status == OPSCOPE_OK) {
        function->is_open = true;
        inliner->depth++;
        status = visit_block(inliner, function->inlined->body);
        inliner->depth--;
        function->is_open = false;
    }
    return status;
}

static int visit_call(struct inliner *inliner, struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *name = opscope__graph_attribute(node, "name");
    if (name == NULL || name->kind != OPSCOPE__GRAPH_CONSTANT_STRING) {
        return opscope__graph_verify_fail(node, "it has no attribute \"name\" with a text");
    }
    struct function *callee = find(inliner, name->as.text);
    if (callee == NULL) {
        return opscope__graph_verify_fail(node, "the model has no function \"%.100s\"",
                                          name->as.text);
    }
    if (callee->is_open) {
        return opscope__graph_verify_fail(node, "the call of \"%.100s\" leads back to itself",
                                          name->as.text);
    }
    int status = callee->inlined == NULL ? visit_function(inliner, callee) : OPSCOPE_OK;
    return status == OPSCOPE_OK ? replace_call(node, name->as.text, callee->inlined) : status;
}

static int visit_block(struct inliner *inliner, struct opscope__graph_block *block)
{
    int status = OPSCOPE_OK;
    struct opscope__graph_node *next;
    for (struct opscope__graph_node *node = block->first; status == OPSCOPE_OK && node != NULL;
         node = next) {
        next = node->next;
        if (strcmp(node->kind, "prim::CallFunction") == 0) {
            status = visit_call(inliner, node);
            continue;
        }
        for (uint32_t i = 0; status == OPSCOPE_OK && i < node->block_count; i++) {
            status = visit_block(inliner, node->blocks[i]);
        }
    }
    return status;
}

int opscope__graph_inline_calls(const struct opscope__graph_function *functions, size_t count,
                                const char *name, struct opscope__model_graph **out)
{
    struct inliner inliner = {.functions = calloc(count + 1, sizeof *inliner.functions),
                              .count = count};
    if (inliner.functions == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        inliner.functions[i] =
            (struct function){.name = functions[i].name, .given = functions[i].graph};
    }
    qsort(inliner.functions, count, sizeof *inliner.functions, compare_names);
    struct function *entry = find(&inliner, name);
    int status = entry != NULL ? visit_function(&inliner, entry)
                               : opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                                     "the model has no function \"%.100s\"", name);
    if (status == OPSCOPE_OK) {
        *out = entry->inlined;
        entry->inlined = NULL;
    }
    for (size_t i = 0; i < count; i++) {
        opscope__graph_release(inliner.functions[i].inlined);
    }
    free(inliner.functions);
    return status;
}
