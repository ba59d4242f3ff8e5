/* tensor/autograd/graph.c -- finding what a backward will walk through, and what is ready next. */
#include "tensor/autograd/graph.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

static const void *target_of(const struct opscope__edge *edge)
{
    return edge->node != NULL ? (const void *)edge->node : (const void *)edge->leaf;
}

static const void *key_of(const struct opscope__task *task)
{
    return task->node != NULL ? (const void *)task->node : (const void *)task->leaf;
}

/* The place of `key` in the map, taken or free. */
static struct opscope__task **place_of(const struct opscope__graph *graph, const void *key)
{
    size_t mask = 2 * graph->capacity - 1;
    size_t at = (size_t)(((uintptr_t)key >> 4) * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (graph->map[at] != NULL && key_of(graph->map[at]) != key) {
        at = (at + 1) & mask;
    }
    return &graph->map[at];
}

static int grow(struct opscope__graph *graph)
{
    size_t capacity = graph->capacity != 0 ? 2 * graph->capacity : FIRST_CAPACITY;
    struct opscope__task **tasks = realloc(graph->tasks, capacity * sizeof(void *));
    graph->tasks = tasks != NULL ? tasks : graph->tasks;
    struct opscope__task **ready = realloc(graph->ready, capacity * sizeof(void *));
    graph->ready = ready != NULL ? ready : graph->ready;
    struct opscope__task **map = calloc(2 * capacity, sizeof(void *));
    if (tasks == NULL || ready == NULL || map == NULL) {
        free(map);
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
    }
    free(graph->map);
    graph->map = map;
    graph->capacity = capacity;
    for (size_t i = 0; i < graph->count; i++) {
        *place_of(graph, key_of(graph->tasks[i])) = graph->tasks[i];
    }
    return OPSCOPE_OK;
}

/* One more edge leads to its target. */
static int expect(struct opscope__graph *graph, const struct opscope__edge *edge)
{
    if (target_of(edge) == NULL) {
        return OPSCOPE_OK;
    }
    int status = graph->count < graph->capacity ? OPSCOPE_OK : grow(graph);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__task **place = place_of(graph, target_of(edge));
    if (*place == NULL) {
        struct opscope__task *task = calloc(1, sizeof *task);
        if (task == NULL) {
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
        }
        task->node = edge->node;
        task->leaf = edge->leaf;
        task->index = graph->count;
        graph->tasks[graph->count++] = task;
        *place = task;
    }
    (*place)->pending++;
    return OPSCOPE_OK;
}

int opscope__graph_build(struct opscope__graph *graph, const struct opscope__edge *roots,
                         size_t count)
{
    memset(graph, 0, sizeof *graph);
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < count && status == OPSCOPE_OK; i++) {
        status = expect(graph, &roots[i]);
    }
    for (size_t i = 0; i < graph->count && status == OPSCOPE_OK; i++) {
        const opscope_node *node = graph->tasks[i]->node;
        for (size_t j = 0; node != NULL && j < node->input_count && status == OPSCOPE_OK; j++) {
            status = expect(graph, &node->edges[j]);
        }
    }
    return status;
}

void opscope__graph_destroy(struct opscope__graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        for (int j = 0; j < OPSCOPE_OUTPUT_LIMIT; j++) {
            opscope_tensor_release(graph->tasks[i]->arrived[j]);
        }
        free(graph->tasks[i]);
    }
    free(graph->tasks);
    free(graph->map);
    free(graph->ready);
}

struct opscope__task *opscope__graph_find(const struct opscope__graph *graph,
                                          const struct opscope__edge *edge)
{
    return graph->capacity != 0 && target_of(edge) != NULL ? *place_of(graph, target_of(edge)) : NULL;
}

static bool goes_before(const struct opscope__task *a, const struct opscope__task *b)
{
    int64_t nr_a = a->node != NULL ? a->node->sequence_nr : INT64_MAX;
    int64_t nr_b = b->node != NULL ? b->node->sequence_nr : INT64_MAX;
    return nr_a != nr_b ? nr_a > nr_b : a->index < b->index;
}

static void swap(struct opscope__task **a, struct opscope__task **b)
{
    struct opscope__task *kept = *a;
    *a = *b;
    *b = kept;
}

void opscope__graph_push(struct opscope__graph *graph, struct opscope__task *task)
{
    struct opscope__task **heap = graph->ready;
    size_t at = graph->ready_count++;
    heap[at] = task;
    while (at > 0 && goes_before(heap[at], heap[(at - 1) / 2])) {
        swap(&heap[at], &heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

struct opscope__task *opscope__graph_pop(struct opscope__graph *graph)
{
    if (graph->ready_count == 0) {
        return NULL;
    }
    struct opscope__task **heap = graph->ready;
    struct opscope__task *first = heap[0];
    size_t count = --graph->ready_count;
    heap[0] = heap[count];
    for (size_t at = 0;;) {
        size_t next = 2 * at + 1;
        if (next + 1 < count && goes_before(heap[next + 1], heap[next])) {
            next++;
        }
        if (next >= count || !goes_before(heap[next], heap[at])) {
            return first;
        }
        swap(&heap[at], &heap[next]);
        at = next;
    }
}
