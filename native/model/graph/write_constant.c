/* model/graph/write_constant.c -- constants as text that is read back exactly. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/graph/writer.h"

static bool is_of_number(char byte)
{
    return (byte >= '0' && byte <= '9') || byte == '-' || byte == '+' || byte == 'e';
}

/* The fewest digits that are read back as the same number, with a '.' or an 'e'. */
static void write_float(struct opscope__graph_writer *writer, double real)
{
    if (!isfinite(real)) {
        opscope__graph_write_text(writer, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, real);
        if (strtod(text, NULL) == real) {
            break;
        }
    }
    /* The program's locale may have another decimal point, of several bytes. */
    size_t point = 0;
    while (is_of_number(text[point])) {
        point++;
    }
    size_t behind = point;
    while (text[behind] != '\0' && !is_of_number(text[behind])) {
        behind++;
    }
    opscope__graph_write(writer, text, point);
    if (behind > point) {
        opscope__graph_write_text(writer, ".");
    }
    opscope__graph_write_text(writer, text + behind);
    if (behind == point && strchr(text, 'e') == NULL) {
        opscope__graph_write_text(writer, ".0");
    }
}

static void write_string(struct opscope__graph_writer *writer, const char *text, size_t bytes)
{
    static const char specials[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    opscope__graph_write_text(writer, "\"");
    size_t written = 0;
    for (size_t i = 0; i < bytes; i++) {
        const char *special = text[i] != '\0' ? strchr(specials, text[i]) : NULL;
        if (special == NULL && (uint8_t)text[i] >= ' ') {
            continue;
        }
        opscope__graph_write(writer, text + written, i - written);
        written = i + 1;
        if (special != NULL) {
            opscope__graph_write_format(writer, "\\%c", letters[special - specials]);
        } else {
            opscope__graph_write_format(writer, "\\u%04x", (unsigned)(uint8_t)text[i]);
        }
    }
    opscope__graph_write(writer, text + written, bytes - written);
    opscope__graph_write_text(writer, "\"");
}

void opscope__graph_write_constant(struct opscope__graph_writer *writer,
                                   const struct opscope__graph_constant *constant)
{
    switch (constant->kind) {
    case OPSCOPE__GRAPH_CONSTANT_BOOL:
        opscope__graph_write_text(writer, constant->as.boolean ? "True" : "False");
        break;
    case OPSCOPE__GRAPH_CONSTANT_INT:
        opscope__graph_write_format(writer, "%" PRId64, constant->as.integer);
        break;
    case OPSCOPE__GRAPH_CONSTANT_FLOAT:
        write_float(writer, constant->as.real);
        break;
    case OPSCOPE__GRAPH_CONSTANT_STRING:
        write_string(writer, constant->as.text, constant->count);
        break;
    case OPSCOPE__GRAPH_CONSTANT_LIST:
        opscope__graph_write_text(writer, "[");
        for (uint32_t i = 0; i < constant->count; i++) {
            opscope__graph_write_text(writer, i > 0 ? ", " : "");
            opscope__graph_write_constant(writer, &constant->as.items[i]);
        }
        opscope__graph_write_text(writer, "]");
        break;
    default:
        opscope__graph_write_text(writer, "None");
    }
}
