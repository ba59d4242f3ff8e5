/* model/graph/buffer.h -- an array that grows: text that is written, elements that are read. */
#ifndef OPSCOPE_MODEL_GRAPH_BUFFER_H
#define OPSCOPE_MODEL_GRAPH_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* All zero: empty. The memory is malloc's. */
struct opscope__graph_buffer {
    char *at;
    size_t bytes;
    size_t room;
};

/* False: out of memory, reported; the buffer stays as it was. */
bool opscope__graph_buffer_push(struct opscope__graph_buffer *buffer, const void *bytes,
                                size_t size);

#endif
