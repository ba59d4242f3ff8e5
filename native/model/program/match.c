/* model/program/match.c -- which row of the table of kinds is that of a node. */
#include <stdio.h>
#include <string.h>

#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "model/program/lower.h"
#include "opscope/status.h"

/* A pattern while it is compared with types. */
struct match {
    const char *at;
    const struct opscope__graph_type *any;   /* the type bound to T; NULL: none yet */
    const struct opscope__graph_type *plain; /* the type bound to "plain" */
};

static bool take(struct match *match, const char *word)
{
    size_t bytes = strlen(word);
    bool is_there = strncmp(match->at, word, bytes) == 0;
    match->at += is_there ? bytes : 0;
    return is_there;
}

/* The first value binds the variable to its type; later values must have that type. */
static bool is_bound(const struct opscope__graph_type **variable,
                     const struct opscope__graph_type *type)
{
    if (*variable == NULL) {
        *variable = type;
    }
    return opscope__graph_type_accepts(*variable, type);
}

static bool is_plain(const struct opscope__graph_type *type)
{
    return type->kind == OPSCOPE__GRAPH_INT || type->kind == OPSCOPE__GRAPH_FLOAT ||
           type->kind == OPSCOPE__GRAPH_BOOL || type->kind == OPSCOPE__GRAPH_STR ||
           type->kind == OPSCOPE__GRAPH_DTYPE;
}

static bool is_numbers(const struct opscope__graph_type *type)
{
    while (type->kind == OPSCOPE__GRAPH_LIST) {
        type = type->parts[0];
    }
    return type->kind == OPSCOPE__GRAPH_INT || type->kind == OPSCOPE__GRAPH_FLOAT ||
           type->kind == OPSCOPE__GRAPH_BOOL;
}

/* Compares the next type of the pattern, and moves behind it if it fits. */
static bool fits(struct match *match, const struct opscope__graph_type *type)
{
    if (take(match, "List[")) {
        return type->kind == OPSCOPE__GRAPH_LIST && fits(match, type->parts[0]) && take(match, "]");
    }
    if (take(match, "Optional[")) {
        while (type->kind == OPSCOPE__GRAPH_OPTIONAL) {
            type = type->parts[0];
        }
        if (type->kind == OPSCOPE__GRAPH_NONE) {
            match->at += strcspn(match->at, "]") + 1;
            return true;
        }
        return fits(match, type) && take(match, "]");
    }
    for (unsigned kind = 0; kind < OPSCOPE__GRAPH_SIMPLE_COUNT; kind++) {
        if (take(match, opscope__graph_type_kind_name(kind))) {
            return type->kind == kind;
        }
    }
    return take(match, "plain")     ? is_plain(type) && is_bound(&match->plain, type)
           : take(match, "any")     ? true
           : take(match, "numbers") ? is_numbers(type)
                                    : take(match, "T") && is_bound(&match->any, type);
}

static bool inputs_fit(struct match *match, const struct opscope__graph_uses *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        if ((i > 0 && !take(match, ", ")) || !fits(match, inputs->at[i].value->type)) {
            return false;
        }
    }
    return *match->at == '\0';
}

/* An output of type T has exactly the type bound to T, not an Optional of it. */
static bool output_fits(struct match *match, const char *pattern,
                        const struct opscope__graph_values *outputs)
{
    if (outputs->count != (*pattern != '\0')) {
        return false;
    }
    match->at = pattern;
    if (*pattern == '\0') {
        return true;
    }
    return strcmp(pattern, "T") == 0 ? opscope__graph_type_equal(match->any, outputs->at[0]->type)
                                     : fits(match, outputs->at[0]->type);
}

/* "(int, Optional[str])" */
static void show_inputs(const struct opscope__graph_uses *inputs, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "(");
    for (uint32_t i = 0; i < inputs->count && used < room; i++) {
        used += (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "",
                                 opscope__graph_show_type(inputs->at[i].value->type).text);
    }
    if (used < room) {
        snprintf(text + used, room - used, ")");
    }
}

int opscope__match_kind(const struct opscope__graph_node *node, const struct opscope__kind **out)
{
    char taken[160] = "", is[120];
    size_t used = 0;
    for (const struct opscope__kind *kind = opscope__kinds; kind->name != NULL; kind++) {
        if (strcmp(kind->name, node->kind) != 0) {
            continue;
        }
        struct match match = {.at = kind->inputs};
        if (inputs_fit(&match, &node->inputs)) {
            if (!output_fits(&match, kind->output, &node->outputs)) {
                return opscope__graph_verify_fail(node, "it produces %s%s",
                                                  *kind->output != '\0' ? "one " : "nothing",
                                                  kind->output);
            }
            *out = kind;
            return OPSCOPE_OK;
        }
        if (used < sizeof taken) {
            used += (size_t)snprintf(taken + used, sizeof taken - used, "%s(%s)",
                                     used > 0 ? " or " : "", kind->inputs);
        }
    }
    if (used == 0) {
        return opscope__graph_verify_fail(node, "there is no kind of this name");
    }
    show_inputs(&node->inputs, is, sizeof is);
    return opscope__graph_verify_fail(node, "it takes %s, not %s", taken, is);
}
