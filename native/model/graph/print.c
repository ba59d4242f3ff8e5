/* model/graph/print.c -- graphs as text. */
#include <stdlib.h>

#include "model/graph/memory.h"
#include "model/graph/text.h"
#include "model/graph/writer.h"
#include "opscope/status.h"

static void write_value(struct opscope__graph_writer *writer,
                        const struct opscope__graph_value *value)
{
    if (value->name != NULL) {
        opscope__graph_write_text(writer, "%");
        opscope__graph_write_text(writer, value->name);
    } else {
        opscope__graph_write_format(writer, "%%%u", value->number);
    }
}

static void write_definitions(struct opscope__graph_writer *writer,
                              const struct opscope__graph_values *values)
{
    for (uint32_t i = 0; i < values->count; i++) {
        opscope__graph_write_text(writer, i > 0 ? ", " : "");
        write_value(writer, values->at[i]);
        opscope__graph_write_text(writer, " : ");
        opscope__graph_write_type(writer, values->at[i]->type);
    }
}

static void write_uses(struct opscope__graph_writer *writer, const struct opscope__graph_uses *uses)
{
    opscope__graph_write_text(writer, "(");
    for (uint32_t i = 0; i < uses->count; i++) {
        opscope__graph_write_text(writer, i > 0 ? ", " : "");
        write_value(writer, uses->at[i].value);
    }
    opscope__graph_write_text(writer, ")");
}

static void write_attributes(struct opscope__graph_writer *writer,
                             const struct opscope__graph_node *node)
{
    if (node->attribute_count == 0) {
        return;
    }
    for (uint32_t i = 0; i < node->attribute_count; i++) {
        opscope__graph_write_text(writer, i > 0 ? ", " : "[");
        opscope__graph_write_text(writer, node->attributes[i].name);
        opscope__graph_write_text(writer, "=");
        opscope__graph_write_constant(writer, &node->attributes[i].value);
    }
    opscope__graph_write_text(writer, "]");
}

static void write_indent(struct opscope__graph_writer *writer, uint32_t levels)
{
    for (uint32_t i = 0; i < levels; i++) {
        opscope__graph_write_text(writer, "  ");
    }
}

static void write_nodes(struct opscope__graph_writer *writer,
                        const struct opscope__graph_block *block, uint32_t indent);

static void write_node(struct opscope__graph_writer *writer, const struct opscope__graph_node *node,
                       uint32_t indent)
{
    write_indent(writer, indent);
    write_definitions(writer, &node->outputs);
    opscope__graph_write_text(writer, node->outputs.count > 0 ? " = " : "");
    opscope__graph_write_text(writer, node->kind);
    write_attributes(writer, node);
    write_uses(writer, &node->inputs);
    if (node->scope != NULL) {
        opscope__graph_write_text(writer, ", scope: ");
        opscope__graph_write_text(writer, node->scope);
    }
    if (node->location != NULL) {
        opscope__graph_write_text(writer, " # ");
        opscope__graph_write_text(writer, node->location);
    }
    opscope__graph_write_text(writer, "\n");
    for (uint32_t i = 0; i < node->block_count; i++) {
        write_indent(writer, indent + 1);
        opscope__graph_write_format(writer, "block%u(", i);
        write_definitions(writer, &node->blocks[i]->inputs);
        opscope__graph_write_text(writer, "):\n");
        write_nodes(writer, node->blocks[i], indent + 2);
        write_indent(writer, indent + 2);
        opscope__graph_write_text(writer, "-> ");
        write_uses(writer, &node->blocks[i]->outputs);
        opscope__graph_write_text(writer, "\n");
    }
}

static void write_nodes(struct opscope__graph_writer *writer,
                        const struct opscope__graph_block *block, uint32_t indent)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        write_node(writer, node, indent);
    }
}

int opscope__graph_print(struct opscope__model_graph *graph, char **text, size_t *bytes)
{
    struct opscope__graph_writer writer = {0};
    opscope__graph_number(graph);
    opscope__graph_write_text(&writer, "graph(");
    write_definitions(&writer, &graph->body->inputs);
    opscope__graph_write_text(&writer, "):\n");
    write_nodes(&writer, graph->body, 1);
    opscope__graph_write_text(&writer, "  return ");
    write_uses(&writer, &graph->body->outputs);
    opscope__graph_write(&writer, "\n", sizeof "\n");
    if (writer.failed) {
        free(writer.text.at);
        return opscope__graph_failed();
    }
    *text = writer.text.at;
    *bytes = writer.text.bytes - 1;
    return OPSCOPE_OK;
}
