/* model/graph/memory.c -- the memory of a graph, freed at once with it. */
#include "model/graph/memory.h"

#include <string.h>

#include "opscope/status.h"
#include "opscope/tensor.h"

void *opscope__graph_memory(struct opscope__model_graph *graph, size_t bytes)
{
    size_t held = graph->arena.bytes - graph->arena.free_bytes;
    if (bytes > graph->bytes_limit || held > graph->bytes_limit - bytes) {
        opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                            "the graph needs more than its %zu bytes of memory",
                            graph->bytes_limit);
        return NULL;
    }
    void *memory = opscope__arena_take(&graph->arena, bytes);
    if (memory == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    return memory;
}

char *opscope__graph_copy(struct opscope__model_graph *graph, const char *text, size_t bytes)
{
    char *copy = opscope__graph_memory(graph, bytes + 1);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

void *opscope__graph_grow(struct opscope__model_graph *graph, void *array, size_t count,
                          size_t element_bytes)
{
    /* Room is the next power of two. */
    if (count > 0 && (count & (count - 1)) != 0) {
        return array;
    }
    void *larger = opscope__graph_memory(graph, (count > 0 ? 2 * count : 1) * element_bytes);
    if (larger != NULL && count > 0) {
        memcpy(larger, array, count * element_bytes);
    }
    return larger;
}

int opscope__graph_failed(void)
{
    return opscope_tensor_error_kind() == OPSCOPE_ERROR_MEMORY ? OPSCOPE_ERR_NO_MEMORY
                                                               : OPSCOPE_ERR_INVALID;
}
