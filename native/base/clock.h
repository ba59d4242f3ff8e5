/* base/clock.h -- time for durations, in ticks of the cheapest counter this machine has.
 *
 * The processor's invariant counter where there is one, clock_gettime else. Not for wall-clock
 * time: that is read once, at calibration, together with the counter.
 */
#ifndef OPSCOPE_BASE_CLOCK_H
#define OPSCOPE_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct opscope__clock {
    uint64_t source; /* opscope_clock_source of opscope/segment.h */
    uint64_t ticks_per_second;
    uint64_t anchor_ticks; /* read together with anchor_unix_ns */
    uint64_t anchor_unix_ns;
} opscope__clock;

/* Written once, as the library is loaded. */
extern bool opscope__clock_is_counter;

/* The source and its rate; the first time, waits until half a millisecond after the library was
 * loaded, or for as long where that is long ago. */
void opscope__clock_start(opscope__clock *out);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t opscope__monotonic_ns(void);

static inline uint64_t opscope__ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(opscope__clock_is_counter, 1)) {
        return __builtin_ia32_rdtsc();
    }
#elif defined(__aarch64__)
    if (__builtin_expect(opscope__clock_is_counter, 1)) {
        uint64_t ticks;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return opscope__monotonic_ns();
}

#endif
