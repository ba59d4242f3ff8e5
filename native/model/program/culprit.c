/* model/program/culprit.c -- walks from the entry to functions that fail by themselves. */
#include "model/program/culprit.h"

#include <string.h>

#include "opscope/status.h"

enum { TRIALS = 64 }; /* of a model with more functions, one that calls the culprit may be named */

struct search {
    struct opscope__program_source source;
    const char *tried[TRIALS];
    size_t count;
};

static const struct opscope__model_graph *graph_of(const struct search *search, const char *name)
{
    for (size_t i = 0; i < search->source.function_count; i++) {
        if (strcmp(search->source.functions[i].name, name) == 0) {
            return search->source.functions[i].graph;
        }
    }
    return NULL;
}

static bool is_new(struct search *search, const char *name)
{
    for (size_t i = 0; i < search->count; i++) {
        if (strcmp(search->tried[i], name) == 0) {
            return false;
        }
    }
    if (search->count == TRIALS) {
        return false;
    }
    search->tried[search->count++] = name;
    return true;
}

static bool fails(struct search *search, const char *name)
{
    struct opscope__program *program = NULL;
    search->source.entry = name;
    int status = opscope__program_new(&search->source, &program);
    opscope__program_release(program);
    return status != OPSCOPE_OK;
}

static const char *callee(const struct opscope__graph_node *node)
{
    const struct opscope__graph_constant *name = opscope__graph_attribute(node, "name");
    bool is_call =
        strcmp(node->kind, "prim::CallFunction") == 0 || strcmp(node->kind, "prim::Fork") == 0;
    return is_call && name != NULL && name->kind == OPSCOPE__GRAPH_CONSTANT_STRING ? name->as.text
                                                                                   : NULL;
}

static const char *failing_callee(struct search *search, const struct opscope__graph_block *block)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        const char *name = callee(node), *found = NULL;
        if (name != NULL && graph_of(search, name) != NULL && is_new(search, name) &&
            fails(search, name)) {
            return name;
        }
        for (uint32_t i = 0; found == NULL && i < node->block_count; i++) {
            found = failing_callee(search, node->blocks[i]);
        }
        if (found != NULL) {
            return found;
        }
    }
    return NULL;
}

const char *opscope__program_culprit(const struct opscope__program_source *source)
{
    struct search search = {.source = *source};
    const char *culprit = source->entry, *next = source->entry;
    if (graph_of(&search, culprit) == NULL) {
        return NULL;
    }
    is_new(&search, culprit);
    for (; next != NULL; next = failing_callee(&search, graph_of(&search, culprit)->body)) {
        culprit = next;
    }
    return fails(&search, culprit) ? culprit : NULL;
}
