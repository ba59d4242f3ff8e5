/* opscope/metric.h -- numbers that a library counts itself, shown in the segment beside the ranges.
 *
 * The idea: a metric is one 64-bit value with a name and a label. While a recorder runs the value
 * itself lies in the segment, so that whoever reads the file sees it at any moment and a killed
 * process loses none of it; else it lies in the metric. A host agent exports the names it knows.
 *
 * Threads: any; adding is one atomic addition. While a recorder starts or stops, what other threads
 * are just adding may appear late. Forks: a child's counters begin anew in its segment, its gauges
 * and peaks stay as they were.
 *
 *     static opscope_metric live;
 *     opscope_metric_register(&live, "opscope.memory.live", "cpu", OPSCOPE_METRIC_GAUGE);
 *     opscope_metric_add(&live, bytes);
 */
#ifndef OPSCOPE_METRIC_H
#define OPSCOPE_METRIC_H

#include <stdint.h>

#include "opscope/segment.h"
#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* The caller's memory, never to be freed or moved once registered. Fields are the library's. */
typedef struct opscope_metric {
    uint64_t *value;  /* atomic: where it counts now, `here` or in the segment */
    uint64_t here;    /* atomic */
    uint64_t *left;   /* where it counted last: segment lock */
    uint64_t before;  /* of a counter, what earlier segments have: segment lock */
    uint64_t at_fork; /* segment lock */
    const char *name, *label;
    opscope_metric_kind kind;
    struct opscope_metric *next; /* segment lock */
} opscope_metric;

/* Begins at 0. Name and label are kept, not copied. ERR_INVALID where they are empty or longer than
 * 127 bytes. One that is refused, or finds no room in the segment (for 256), counts without being
 * seen. */
OPSCOPE_API int opscope_metric_register(opscope_metric *metric, const char *name, const char *label,
                                        opscope_metric_kind kind);
/* In this process: of a counter, since it was registered, earlier segments and the time before a
 * fork included. */
OPSCOPE_API uint64_t opscope_metric_read(opscope_metric *metric);

/* Adds, modulo 2^64: to lower a gauge, add the negative. Returns the value there is now, of a
 * counter since its segment began. */
static inline uint64_t opscope_metric_add(opscope_metric *metric, uint64_t amount)
{
    /* Partner of the acquire: the release in record/metric.c; the value is set up by then. */
    uint64_t *value = __atomic_load_n(&metric->value, __ATOMIC_ACQUIRE);
    return __atomic_add_fetch(value, amount, __ATOMIC_RELAXED);
}

/* For peaks: makes the value at least this. */
static inline void opscope_metric_raise(opscope_metric *metric, uint64_t to)
{
    uint64_t *value = __atomic_load_n(&metric->value, __ATOMIC_ACQUIRE);
    uint64_t seen = __atomic_load_n(value, __ATOMIC_RELAXED);
    while (to > seen &&
           !__atomic_compare_exchange_n(value, &seen, to, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/* For peaks and gauges. */
static inline void opscope_metric_set(opscope_metric *metric, uint64_t to)
{
    __atomic_store_n(__atomic_load_n(&metric->value, __ATOMIC_ACQUIRE), to, __ATOMIC_RELAXED);
}

OPSCOPE_END_DECLS

#endif
