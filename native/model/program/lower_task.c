/* model/program/lower_task.c -- nodes that fork functions as tasks, and wait for them. */
#include <stdlib.h>
#include <string.h>

#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "model/program/lower.h"
#include "opscope/status.h"

bool opscope__type_has_future(const struct opscope__graph_type *type)
{
    bool has = type->kind == OPSCOPE__GRAPH_FUTURE;
    for (uint32_t i = 0; i < type->count && !has; i++) {
        has = opscope__type_has_future(type->parts[i]);
    }
    return has;
}

/* The program of a function, made once for all forks of it. */
static int find_forked(const struct opscope__emitter *emitter,
                       const struct opscope__graph_node *node, const char *name,
                       struct opscope__program **out)
{
    const struct opscope__program_source *source = emitter->source;
    for (const struct opscope__program_source *at = source; at != NULL; at = at->outer) {
        if (strcmp(at->entry, name) == 0) {
            return opscope__graph_verify_fail(node, "the task \"%.100s\" leads back to itself",
                                              name);
        }
    }
    for (const struct opscope__forked *known = *emitter->forked; known != NULL;
         known = known->next) {
        if (strcmp(known->name, name) == 0) {
            *out = known->program;
            return OPSCOPE_OK;
        }
    }
    size_t bytes = strlen(name) + 1;
    struct opscope__forked *forked = calloc(1, sizeof *forked + bytes);
    if (forked == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    struct opscope__program_source own = *source;
    own.entry = name;
    own.outer = source;
    own.forked = emitter->forked;
    int status = emitter->make(&own, &forked->program);
    if (status != OPSCOPE_OK) {
        free(forked);
        return status;
    }
    memcpy(forked->name, name, bytes);
    forked->next = *emitter->forked;
    *emitter->forked = forked;
    *out = forked->program;
    return OPSCOPE_OK;
}

/* The types of a call: the function's, and a future of its result. */
static int check_fork(const struct opscope__graph_node *node, const char *name,
                      const struct opscope__program *program)
{
    const struct opscope__graph_block *body = program->graph->body;
    if (node->outputs.count != 1 || node->outputs.at[0]->type->kind != OPSCOPE__GRAPH_FUTURE) {
        return opscope__graph_verify_fail(node, "a fork has one output, a Future");
    }
    if (node->inputs.count != body->inputs.count || body->outputs.count != 1) {
        return opscope__graph_verify_fail(
            node, "%u inputs, where \"%.100s\" has %u, and %u outputs, which must be one",
            node->inputs.count, name, body->inputs.count, body->outputs.count);
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
    const struct opscope__graph_type *made = node->outputs.at[0]->type->parts[0],
                                     *given = body->outputs.at[0].value->type;
    return opscope__graph_type_accepts(made, given)
               ? OPSCOPE_OK
               : opscope__graph_verify_fail(node, "a future of %s, where \"%.100s\" returns %s",
                                            opscope__graph_show_type(made).text, name,
                                            opscope__graph_show_type(given).text);
}

int opscope__lower_fork(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *name = opscope__graph_attribute(node, "name");
    struct opscope__program *program = NULL;
    if (name == NULL || name->kind != OPSCOPE__GRAPH_CONSTANT_STRING) {
        return opscope__graph_verify_fail(node, "it has no attribute \"name\" with a text");
    }
    int status = find_forked(emitter, node, name->as.text, &program);
    if (status == OPSCOPE_OK) {
        status = check_fork(node, name->as.text, program);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_FORK, node);
    }
    if (status == OPSCOPE_OK) {
        opscope__emit_last(emitter)->as.forked = program;
        status = opscope__emit_inputs(emitter, node);
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}

int opscope__lower_wait(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    if (node->inputs.count != 1 || node->outputs.count != 1 ||
        node->inputs.at[0].value->type->kind != OPSCOPE__GRAPH_FUTURE) {
        return opscope__graph_verify_fail(node, "a wait takes one Future, and gives its value");
    }
    const struct opscope__graph_type *given = node->inputs.at[0].value->type->parts[0];
    if (!opscope__graph_type_accepts(node->outputs.at[0]->type, given)) {
        return opscope__graph_verify_fail(node, "output 0 is %s, where it gives %s",
                                          opscope__graph_show_type(node->outputs.at[0]->type).text,
                                          opscope__graph_show_type(given).text);
    }
    int status = opscope__emit_begin(emitter, OPSCOPE__CODE_WAIT, node);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_inputs(emitter, node);
    }
    return status == OPSCOPE_OK ? opscope__emit_outputs(emitter, node) : status;
}

int opscope__check_futures(const struct opscope__graph_block *body)
{
    for (uint32_t i = 0; i < body->inputs.count; i++) {
        if (opscope__type_has_future(body->inputs.at[i]->type)) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                       "input %u has a future, which is of one run alone", i);
        }
    }
    for (uint32_t i = 0; i < body->outputs.count; i++) {
        if (opscope__type_has_future(body->outputs.at[i].value->type)) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                       "result %u has a future, which is of one run alone", i);
        }
    }
    return OPSCOPE_OK;
}
