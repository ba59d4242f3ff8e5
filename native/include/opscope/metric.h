/* opscope/metric.h -- counters that a library keeps itself, visible in the segment beside the
 * ranges.
 *
 * The idea: a metric is one 64-bit value with a name and a label. While a recorder runs, the value
 * lies in the segment: every reader of the file sees it at any moment, and a killed process loses
 * none of it. Otherwise it lies in the metric. A host agent exports the metrics whose names it
 * knows.
 *
 * Threads: any; adding is one atomic addition. While a recorder starts or stops, an addition of
 * another thread may appear late. Forks: in its own segment a child's counters start at 0; its
 * gauges and peaks keep their values.
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

/* The caller's memory: the caller must not free or move it once registered. All fields belong to
 * the library. */
typedef struct opscope_metric {
    uint64_t *value;  /* atomic: the current place of the value, `here` or in the segment */
    uint64_t here;    /* atomic */
    uint64_t *left;   /* the previous place of the value: segment lock */
    uint64_t before;  /* of a counter, the sum of earlier segments: segment lock */
    uint64_t at_fork; /* segment lock */
    const char *name, *label;
    opscope_metric_kind kind;
    struct opscope_metric *next; /* segment lock */
} opscope_metric;

/* The metric starts at 0. Name and label are kept, not copied. ERR_INVALID if one is empty or
 * longer than 127 bytes. A metric that is refused, or that finds no room in the segment (for 256),
 * still counts but no reader sees it. */
OPSCOPE_API int opscope_metric_register(opscope_metric *metric, const char *name, const char *label,
                                        opscope_metric_kind kind);
/* The value in this process. A counter's includes everything since its registration: earlier
 * segments and the time before a fork. */
OPSCOPE_API uint64_t opscope_metric_read(opscope_metric *metric);

/* Adds, modulo 2^64: to lower a gauge, add the negative. Returns the new value; for a counter, that
 * since its segment began. */
static inline uint64_t opscope_metric_add(opscope_metric *metric, uint64_t amount)
{
    /* Acquire: pairs with the release in recorder/metric.c, which first sets up the value. */
    uint64_t *value = __atomic_load_n(&metric->value, __ATOMIC_ACQUIRE);
    return __atomic_add_fetch(value, amount, __ATOMIC_RELAXED);
}

/* For peaks: raises the value to at least `to`. */
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
