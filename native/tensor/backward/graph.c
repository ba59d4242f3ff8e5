/* tensor/backward/graph.c -- finding what a backward will walk through, and what is ready next. */
#include "tensor/backward/graph.h"

#include <stdlib.h>
#include <string.h>

#include "tensor/memory/block.h"

enum { FIRST_CAPACITY = 64 };

static int no_memory(void)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "backward: out of memory");
}

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
        return no_memory();
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
        size_t outputs = edge->node != NULL ? edge->node->output_count : 1;
        size_t bytes = sizeof(struct opscope__task) + outputs * sizeof(opscope_tensor *);
        struct opscope__task *task = opscope__block_take(bytes);
        if (task == NULL) {
            return no_memory();
        }
        memset(task, 0, bytes);
        task->output_count = outputs;
        task->node = edge->node;
        task->leaf = edge->leaf;
        task->index = graph->count;
        graph->tasks[graph->count++] = task;
        graph->heavy_count += opscope__task_is_heavy(task);
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

/* ---- the order of a serial walk ------------------------------------------------------------ */

/* The next turn at the edge's target, which becomes ready where it was the last one. */
static uint32_t take_turn(struct opscope__graph *graph, const struct opscope__edge *edge)
{
    struct opscope__task *task = opscope__graph_find(graph, edge);
    if (task == NULL) {
        return 0;
    }
    uint32_t turn = (uint32_t)task->expected++;
    if (task->expected == task->pending) {
        opscope__graph_push(graph, task);
    }
    return turn;
}

static int make_room(struct opscope__task *task)
{
    task->deliveries = calloc(task->pending, sizeof *task->deliveries);
    task->turns =
        task->node != NULL ? calloc(task->node->input_count + 1, sizeof *task->turns) : NULL;
    return task->deliveries != NULL && (task->node == NULL || task->turns != NULL) ? OPSCOPE_OK
                                                                                   : no_memory();
}

int opscope__graph_order(struct opscope__graph *graph, const struct opscope__edge *roots,
                         size_t count, uint32_t *turns)
{
    graph->order = malloc((graph->count + 1) * sizeof *graph->order);
    int status = graph->order != NULL ? OPSCOPE_OK : no_memory();
    for (size_t i = 0; i < graph->count && turns != NULL && status == OPSCOPE_OK; i++) {
        status = make_room(graph->tasks[i]);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t turn = take_turn(graph, &roots[i]);
        if (turns != NULL) {
            turns[i] = turn;
        }
    }
    struct opscope__task *task;
    for (size_t rank = 0; (task = opscope__graph_pop(graph)) != NULL; rank++) {
        task->rank = rank;
        graph->order[rank] = task;
        for (size_t i = 0; task->node != NULL && i < task->node->input_count; i++) {
            uint32_t turn = take_turn(graph, &task->node->edges[i]);
            if (turns != NULL) {
                task->turns[i] = turn;
            }
        }
    }
    return OPSCOPE_OK;
}

void opscope__graph_prune(struct opscope__graph *graph, const struct opscope__edge *wanted,
                          size_t count)
{
    /* From the last to the first; for the while, is_idle says that nothing wanted is at or behind
     * it. */
    for (size_t i = 0; i < graph->count; i++) {
        graph->tasks[i]->is_idle = true;
    }
    for (size_t i = 0; i < count; i++) {
        struct opscope__task *task = opscope__graph_find(graph, &wanted[i]);
        if (task != NULL) {
            task->is_idle = false;
        }
    }
    for (size_t rank = graph->count; rank-- > 0;) {
        struct opscope__task *task = graph->order[rank];
        for (size_t i = 0; task->node != NULL && i < task->node->input_count; i++) {
            const struct opscope__task *next = opscope__graph_find(graph, &task->node->edges[i]);
            task->leads_on |= next != NULL && !next->is_idle;
        }
        task->is_idle &= !task->leads_on;
    }
    for (size_t i = 0; i < graph->count; i++) {
        graph->tasks[i]->is_idle = !graph->tasks[i]->leads_on;
    }
}

static void destroy(struct opscope__task *task)
{
    for (size_t i = 0; i < task->output_count; i++) {
        opscope_tensor_release(task->arrived[i]);
    }
    for (size_t i = task->next; i < task->expected && task->deliveries != NULL; i++) {
        opscope_tensor_release(task->deliveries[i].gradient);
    }
    free(task->deliveries);
    free(task->turns);
    opscope__block_give(task, sizeof *task + task->output_count * sizeof *task->arrived);
}

void opscope__graph_destroy(struct opscope__graph *graph)
{
    for (size_t i = 0; i < graph->count; i++) {
        destroy(graph->tasks[i]);
    }
    free(graph->tasks);
    free(graph->map);
    free(graph->ready);
    free(graph->order);
}

struct opscope__task *opscope__graph_find(const struct opscope__graph *graph,
                                          const struct opscope__edge *edge)
{
    return graph->capacity != 0 && target_of(edge) != NULL ? *place_of(graph, target_of(edge))
                                                           : NULL;
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
