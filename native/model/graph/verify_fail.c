/* model/graph/verify_fail.c -- the places that the verifier's failures name. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/document/build.h"
#include "model/graph/verifier.h"
#include "opscope/tensor.h"

struct opscope__graph_value_label opscope__graph_value_label(
    const struct opscope__graph_value *value)
{
    struct opscope__graph_value_label label;
    if (value->name != NULL) {
        snprintf(label.text, sizeof label.text, "%%%s",
                 opscope__printable(value->name, strlen(value->name)).text);
    } else {
        snprintf(label.text, sizeof label.text, "%%%u", value->number);
    }
    return label;
}

int opscope__graph_verify_fail(const struct opscope__graph_node *node, const char *format, ...)
{
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    if (node == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "graph: %s", reason);
    }
    struct opscope__printable kind = opscope__printable(node->kind, strlen(node->kind));
    if (node->outputs.count > 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%s = %s: %s",
                                   opscope__graph_value_label(node->outputs.at[0]).text, kind.text,
                                   reason);
    }
    return opscope_tensor_fail(
        OPSCOPE_ERROR_VALUE, "%s(%s): %s", kind.text,
        node->inputs.count > 0 ? opscope__graph_value_label(node->inputs.at[0].value).text : "",
        reason);
}
