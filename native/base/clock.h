/* base/clock.h -- time for durations, in ticks of the cheapest counter of this machine.
 *
 * It uses the processor's invariant counter, or clock_gettime on a processor without one. It does
 * not give wall-clock time: calibration reads that once, together with the counter.
 */
#ifndef OPSCOPE_BASE_CLOCK_H
#define OPSCOPE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hot.h"

/* The values are those of opscope_clock_source in opscope/segment.h. */
enum opscope__clock_source {
    OPSCOPE__CLOCK_TSC = 1,
    OPSCOPE__CLOCK_CNTVCT = 2,
    OPSCOPE__CLOCK_MONOTONIC = 3
};

typedef struct opscope__clock {
    uint64_t source; /* opscope__clock_source */
    uint64_t ticks_per_second;
    uint64_t anchor_ticks; /* read together with anchor_unix_ns */
    uint64_t anchor_unix_ns;
} opscope__clock;

/* Written once, when the library is loaded. */
extern OPSCOPE__INTERNAL bool opscope__clock_is_counter;

/* Fills in the source and its rate. The first call measures: it waits until half a millisecond has
 * passed since the library was loaded; if that was long ago, it waits half a millisecond. */
void opscope__clock_start(opscope__clock *out);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t opscope__monotonic_ns(void);

/* CLOCK_THREAD_CPUTIME_ID in nanoseconds: a system call. */
uint64_t opscope__thread_cpu_ns(void);

/* The processor's counter. Only if opscope__clock_is_counter. */
static inline uint64_t opscope__counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

static inline uint64_t opscope__ticks(void)
{
    return __builtin_expect(opscope__clock_is_counter, 1) ? opscope__counter()
                                                          : opscope__monotonic_ns();
}

#endif
