/* model/graph/shown_type.c -- types in the texts of failures. */
#include "model/graph/shown_type.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/writer.h"

struct opscope__graph_shown_type opscope__graph_show_type(const struct opscope__graph_type *type)
{
    struct opscope__graph_writer writer = {0};
    struct opscope__graph_shown_type shown = {"?"};
    opscope__graph_write_type(&writer, type);
    if (!writer.failed) {
        size_t room = sizeof shown.text - sizeof "...", bytes = writer.text.bytes;
        memcpy(shown.text, writer.text.at, bytes < room ? bytes : room);
        strcpy(shown.text + (bytes < room ? bytes : room), bytes > room ? "..." : "");
    }
    free(writer.text.at);
    return shown;
}
