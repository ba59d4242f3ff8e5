/* model/graph/writer.h -- the parts of a graph's text as they are written. */
#ifndef OPSCOPE_MODEL_GRAPH_WRITER_H
#define OPSCOPE_MODEL_GRAPH_WRITER_H

#include "model/graph/buffer.h"
#include "model/graph/constant.h"
#include "model/graph/type.h"
#include "opscope/export.h"

struct opscope__graph_writer {
    struct opscope__graph_buffer text;
    bool failed; /* out of memory, reported: all that follows is dropped */
};

void opscope__graph_write(struct opscope__graph_writer *writer, const char *text, size_t bytes);
void opscope__graph_write_text(struct opscope__graph_writer *writer, const char *text);
/* Of at most 100 bytes. */
void opscope__graph_write_format(struct opscope__graph_writer *writer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
OPSCOPE_API void opscope__graph_write_type(struct opscope__graph_writer *writer,
                                           const struct opscope__graph_type *type);
void opscope__graph_write_constant(struct opscope__graph_writer *writer,
                                   const struct opscope__graph_constant *constant);

#endif
