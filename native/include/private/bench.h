/* private/bench.h -- measures the cost of a range, in loops that must run in C.
 *
 * The idea: a bench operator is a C function that does nothing. A loop calls it through a pointer,
 * so the compiler can neither inline it nor move code out of the loop: alone, between two reads of
 * the clock, and inside a range. The difference from the first is the added cost. The caller
 * chooses which callbacks are registered meanwhile (agent/opscope/bench/record.py).
 *
 * Threads: any; a loop runs on the caller's. Forks: nothing to do.
 *
 *     double ns;
 *     opscope_bench_ns(OPSCOPE_BENCH_RANGE, 1000000, &ns);
 */
#ifndef OPSCOPE_PRIVATE_BENCH_H
#define OPSCOPE_PRIVATE_BENCH_H

#include <stdint.h>

#include "opscope/record.h"
#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef enum opscope_bench_loop {
    OPSCOPE_BENCH_BARE = 0,      /* the operator alone */
    OPSCOPE_BENCH_TWO_READS = 1, /* with a read of the clock before and after its work */
    OPSCOPE_BENCH_RANGE = 2      /* with a range around its work */
} opscope_bench_loop;

/* Nanoseconds per call of that operator, over `count` calls (at least 1). */
OPSCOPE_API int opscope_bench_ns(opscope_bench_loop loop, uint64_t count, double *out);

/* A callback pair that does nothing: the cheapest possible one. */
OPSCOPE_API int opscope_bench_empty_start(const opscope_range *fn, void *user, void **context);
OPSCOPE_API int opscope_bench_empty_end(const opscope_range *fn, void *user, void *context);

OPSCOPE_END_DECLS

#endif
