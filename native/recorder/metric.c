/* recorder/metric.c -- see opscope/metric.h: keeps the list of metrics, and moves their values into
 * and out of segments.
 *
 * Threads add without a lock while a value moves. A thread that loaded the old place just before
 * may add there a moment after it was emptied; the next move or read finds that amount and adds it
 * to the value.
 */
#include "recorder/metric.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/metric.h"
#include "recorder/state.h"

enum { METRIC_LIMIT = 256, TEXT_LIMIT = 128 };

_Static_assert(METRIC_LIMIT * sizeof(uint64_t) <=
                   OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES,
               "one chunk has them all");

/* Segment lock. */
static opscope_metric *first;
static opscope_chunk *chunk; /* of the current segment, or NULL */

/* ---- moving --------------------------------------------------------------------------------- */

static uint64_t take(uint64_t *from)
{
    return opscope__exchange_relaxed(from, 0);
}

/* Moves amounts that were added to the previous place after the value had left it. */
static void take_stragglers(opscope_metric *metric)
{
    if (metric->left == NULL) {
        return;
    }
    if (metric->kind == OPSCOPE_METRIC_PEAK) {
        opscope_metric_raise(metric, take(metric->left));
    } else {
        (void)opscope_metric_add(metric, take(metric->left));
    }
}

/* Partner of the stores of `value`: the acquire in opscope_metric_add. */
static void enter(opscope_metric *metric, uint64_t *slot)
{
    take_stragglers(metric);
    if (metric->kind == OPSCOPE_METRIC_PEAK) {
        opscope__store_relaxed(slot, opscope__load_relaxed(&metric->here));
    }
    opscope__store_release(&metric->value, slot);
    metric->left = &metric->here;
    if (metric->kind == OPSCOPE_METRIC_COUNTER) {
        metric->before += take(&metric->here);
    } else {
        take_stragglers(metric);
    }
}

/* The value in the segment stays, as the last one that readers see. */
static void leave(opscope_metric *metric)
{
    uint64_t *slot = metric->value;
    take_stragglers(metric);
    opscope__store_release(&metric->value, &metric->here);
    metric->left = slot; /* private memory, and 0, once the segment is closed */
    uint64_t last = opscope__load_relaxed(slot);
    if (metric->kind == OPSCOPE_METRIC_COUNTER) {
        metric->before += last;
    } else if (metric->kind == OPSCOPE_METRIC_GAUGE) {
        (void)opscope_metric_add(metric, last);
    } else {
        opscope_metric_raise(metric, last);
    }
}

/* ---- the segment ------------------------------------------------------------------------------- */

static void show(opscope__segment *segment, opscope_metric *metric)
{
    char text[2 * TEXT_LIMIT];
    size_t name_bytes = strlen(metric->name) + 1, label_bytes = strlen(metric->label) + 1;
    if (chunk == NULL) {
        chunk = opscope__segment_add_chunk(segment, OPSCOPE_CHUNK_METRICS, 0, 0);
    }
    memcpy(text, metric->name, name_bytes);
    memcpy(text + name_bytes, metric->label, label_bytes);
    if (chunk == NULL || chunk->used == METRIC_LIMIT) {
        return;
    }
    const opscope_entry entry = {.kind = OPSCOPE_ENTRY_METRIC,
                                 .detail = (uint16_t)metric->kind,
                                 .id = chunk->used,
                                 .bytes = (uint32_t)(name_bytes + label_bytes)};
    if (!opscope__segment_add_entry(segment, &entry, text)) {
        return;
    }
    uint64_t *values = (uint64_t *)(void *)((char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
    enter(metric, &values[chunk->used]);
    /* Partner: the reader of the file; name and value are stored before they are counted. */
    opscope__store_release(&chunk->used, chunk->used + 1);
}

void opscope__metrics_open(opscope__segment *segment)
{
    chunk = NULL;
    for (opscope_metric *metric = first; metric != NULL; metric = metric->next) {
        show(segment, metric);
    }
}

void opscope__metrics_close(void)
{
    chunk = NULL;
    for (opscope_metric *metric = first; metric != NULL; metric = metric->next) {
        if (metric->value != &metric->here) {
            leave(metric);
        }
    }
}

/* ---- forks ------------------------------------------------------------------------------------- */

void opscope__metrics_fork_prepare(void)
{
    for (opscope_metric *metric = first; metric != NULL; metric = metric->next) {
        metric->at_fork = opscope__load_relaxed(metric->value);
    }
}

void opscope__metrics_fork_child(void)
{
    chunk = NULL;
    for (opscope_metric *metric = first; metric != NULL; metric = metric->next) {
        if (metric->value != &metric->here) {
            bool is_counter = metric->kind == OPSCOPE_METRIC_COUNTER;
            metric->before += is_counter ? metric->at_fork : 0;
            metric->here = is_counter ? 0 : metric->at_fork;
            metric->value = &metric->here; /* no other thread exists here */
        }
        metric->left = NULL;
    }
}

/* ---- public functions -------------------------------------------------------------------------- */

int opscope_metric_register(opscope_metric *metric, const char *name, const char *label,
                            opscope_metric_kind kind)
{
    size_t name_bytes = strnlen(name, TEXT_LIMIT), label_bytes = strnlen(label, TEXT_LIMIT);
    *metric = (opscope_metric){.value = &metric->here, .name = name, .label = label, .kind = kind};
    if (name_bytes == 0 || name_bytes == TEXT_LIMIT || label_bytes == 0 ||
        label_bytes == TEXT_LIMIT) {
        return OPSCOPE_ERR_INVALID;
    }
    opscope__segment_lock();
    opscope_metric **end = &first;
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = metric;
    if (opscope__recorder.segment.base != NULL) {
        show(&opscope__recorder.segment, metric);
    }
    opscope__segment_unlock();
    return OPSCOPE_OK;
}

uint64_t opscope_metric_read(opscope_metric *metric)
{
    opscope__segment_lock();
    take_stragglers(metric);
    uint64_t value = metric->before + opscope__load_relaxed(metric->value);
    opscope__segment_unlock();
    return value;
}
