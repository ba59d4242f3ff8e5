/* model/graph/buffer.c -- an array that grows. */
#include "model/graph/buffer.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "opscope/tensor.h"

bool opscope__graph_buffer_push(struct opscope__graph_buffer *buffer, const void *bytes,
                                size_t size)
{
    if (size > buffer->room - buffer->bytes) {
        size_t room = buffer->room > 0 ? 2 * buffer->room : 256;
        while (room - buffer->bytes < size && room <= SIZE_MAX / 4) {
            room *= 2;
        }
        char *larger = room - buffer->bytes >= size ? realloc(buffer->at, room) : NULL;
        if (larger == NULL) {
            opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
            return false;
        }
        buffer->at = larger;
        buffer->room = room;
    }
    if (size > 0) {
        memcpy(buffer->at + buffer->bytes, bytes, size);
        buffer->bytes += size;
    }
    return true;
}
