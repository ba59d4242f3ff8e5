/* model/program/place.c -- the failures of a run: what graphs raise, and where. */
#include "model/program/place.h"

#include <stdio.h>
#include <string.h>

#include "model/graph/shown_type.h"
#include "model/graph/verifier.h"
#include "tensor/base/error.h"

static const struct {
    const char *name;
    opscope_error_kind kind;
} EXCEPTIONS[] = {
    {"AssertionError", OPSCOPE_ERROR_ASSERTION},
    {"IndexError", OPSCOPE_ERROR_INDEX},
    {"OverflowError", OPSCOPE_ERROR_OVERFLOW},
    {"RuntimeError", OPSCOPE_ERROR_RUNTIME},
    {"TypeError", OPSCOPE_ERROR_TYPE},
    {"ValueError", OPSCOPE_ERROR_VALUE},
    {"ZeroDivisionError", OPSCOPE_ERROR_ZERO_DIVISION},
};

int opscope__raise(const char *text, const char *name)
{
    for (size_t i = 0; i < sizeof EXCEPTIONS / sizeof *EXCEPTIONS; i++) {
        if (strcmp(name, EXCEPTIONS[i].name) == 0) {
            return opscope_tensor_fail(EXCEPTIONS[i].kind, "%s", text);
        }
    }
    return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%.100s: %s", name, text);
}

void opscope__place_failure(const struct opscope__graph_node *node)
{
    char place[200];
    if (node == NULL) {
        return;
    }
    if (node->location != NULL) {
        snprintf(place, sizeof place, "%s", node->location);
    } else if (node->outputs.count > 0) {
        snprintf(place, sizeof place, "%s = %.80s",
                 opscope__graph_value_label(node->outputs.at[0]).text, node->kind);
    } else {
        snprintf(place, sizeof place, "%.80s", node->kind);
    }
    opscope__failure_place(place);
}

int opscope__refuse_input(const struct opscope__graph_value *wanted)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "input %s is not of type %s",
                               opscope__graph_value_label(wanted).text,
                               opscope__graph_show_type(wanted->type).text);
}
