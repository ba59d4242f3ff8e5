/* model/graph/memory.h -- the memory of a graph, freed at once with it (graph.h). */
#ifndef OPSCOPE_MODEL_GRAPH_MEMORY_H
#define OPSCOPE_MODEL_GRAPH_MEMORY_H

#include <stddef.h>

#include "model/document/arena.h"

struct opscope__graph_block;

struct opscope__model_graph {
    struct opscope__arena arena;
    size_t bytes_limit;
    struct opscope__graph_block *body; /* its inputs and outputs are the graph's */
};

/* Memory for as long as the graph lives, not cleared. NULL: reported; the graph's limit would be
 * exceeded, or there is no memory. */
void *opscope__graph_memory(struct opscope__model_graph *graph, size_t bytes);
/* A copy of the bytes with a NUL behind them; NULL as above. */
char *opscope__graph_copy(struct opscope__model_graph *graph, const char *text, size_t bytes);
/* Makes room for one element behind the `count` of an array that began empty and only grew by this
 * function; returns where the array is now, NULL as above. */
void *opscope__graph_grow(struct opscope__model_graph *graph, void *array, size_t count,
                          size_t element_bytes);
/* The status of the failure that was reported last. */
int opscope__graph_failed(void);

#endif
