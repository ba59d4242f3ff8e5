/* model/graph/writer.c -- text, and the types in it. */
#include "model/graph/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void opscope__graph_write(struct opscope__graph_writer *writer, const char *text, size_t bytes)
{
    if (!writer->failed && !opscope__graph_buffer_push(&writer->text, text, bytes)) {
        writer->failed = true;
    }
}

void opscope__graph_write_text(struct opscope__graph_writer *writer, const char *text)
{
    opscope__graph_write(writer, text, strlen(text));
}

void opscope__graph_write_format(struct opscope__graph_writer *writer, const char *format, ...)
{
    char text[101];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    opscope__graph_write_text(writer, text);
}

void opscope__graph_write_type(struct opscope__graph_writer *writer,
                               const struct opscope__graph_type *type)
{
    if (type->kind == OPSCOPE__GRAPH_CLASS) {
        opscope__graph_write_text(writer, type->name);
        return;
    }
    opscope__graph_write_text(writer, opscope__graph_type_kind_name(type->kind));
    if (type->kind < OPSCOPE__GRAPH_SIMPLE_COUNT) {
        return;
    }
    opscope__graph_write_text(writer, "[");
    for (uint32_t i = 0; i < type->count; i++) {
        opscope__graph_write_text(writer, i > 0 ? ", " : "");
        opscope__graph_write_type(writer, type->parts[i]);
    }
    opscope__graph_write_text(writer, "]");
}
