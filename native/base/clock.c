/* base/clock.c -- see base/clock.h. The rate is measured against CLOCK_MONOTONIC_RAW, which no time
 * daemon slews. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <pthread.h>

#include "base/real_time.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The rate comes from two readings, each accurate to about 20 ns and at least half a millisecond
 * apart: this makes the rate accurate to 0.01 %. The first is taken when the library is loaded. A
 * process usually takes longer than that until its first segment, so the second reading rarely
 * waits. An old first reading is not used, because the counter may run during a suspend while the
 * clock stops.
 * Where base/real_time.h cannot help, the clock may be one that stops or runs backwards: then the
 * rate stays a guess. */
enum {
    MEASURE_NS = 500000,
    FIRST_READING_LASTS_NS = 100000000,
    READ_TRIES = 5,
    TICKS_LIMIT = 200000000, /* of a measurement: 40 ms or more, on a counter of 5 GHz or less */
    GUESSED_RATE = 1000000000
};

bool opscope__clock_is_counter = false;

static pthread_once_t measured = PTHREAD_ONCE_INIT;
static uint64_t source_measured;
static uint64_t rate_measured;
#if defined(__x86_64__)
static uint64_t first_ticks, first_ns; /* begin() writes them, then measure() within the once */
#endif

uint64_t opscope__monotonic_ns(void)
{
    return opscope__clock_ns(CLOCK_MONOTONIC);
}

uint64_t opscope__thread_cpu_ns(void)
{
    return opscope__clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Reads the counter and a clock at the same moment: of several tries, uses the one with the fewest
 * ticks in between. */
static void read_together(clockid_t id, uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t before = opscope__ticks();
        uint64_t clock = opscope__clock_ns(id);
        uint64_t after = opscope__ticks();
        if (after - before < best) {
            best = after - before;
            *ticks = before + best / 2;
            *ns = clock;
        }
    }
}

static uint64_t find_source(void)
{
#if defined(__x86_64__)
    unsigned eax, ebx, ecx, edx;
    /* Advanced power management, bit 8: the counter runs at one rate in all states (AMD APM vol. 3,
     * CPUID Fn8000_0007; Intel SDM vol. 3B, "Invariant TSC"). */
    if (__get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8))) {
        return OPSCOPE__CLOCK_TSC;
    }
    return OPSCOPE__CLOCK_MONOTONIC;
#elif defined(__aarch64__)
    return OPSCOPE__CLOCK_CNTVCT;
#else
    return OPSCOPE__CLOCK_MONOTONIC;
#endif
}

static __attribute__((constructor)) void begin(void)
{
    source_measured = find_source();
    opscope__clock_is_counter = source_measured != OPSCOPE__CLOCK_MONOTONIC;
#if defined(__x86_64__)
    read_together(CLOCK_MONOTONIC_RAW, &first_ticks, &first_ns);
#endif
}

static void measure(void)
{
    rate_measured = GUESSED_RATE;
    if (source_measured == OPSCOPE__CLOCK_MONOTONIC) {
        return;
    }
#if defined(__aarch64__)
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(rate_measured));
#elif defined(__x86_64__)
    uint64_t last_ticks = 0, last_ns = 0;
    read_together(CLOCK_MONOTONIC_RAW, &last_ticks, &last_ns);
    if (last_ns - first_ns > FIRST_READING_LASTS_NS) { /* also if the clock runs backwards */
        first_ticks = last_ticks;
        first_ns = last_ns;
    }
    while (last_ns - first_ns < MEASURE_NS && last_ticks - first_ticks < TICKS_LIMIT) {
        read_together(CLOCK_MONOTONIC_RAW, &last_ticks, &last_ns);
    }
    if (last_ns - first_ns >= MEASURE_NS && last_ns > first_ns) {
        rate_measured =
            (uint64_t)((double)(last_ticks - first_ticks) * 1e9 / (double)(last_ns - first_ns));
    }
#endif
}

void opscope__clock_start(opscope__clock *out)
{
    pthread_once(&measured, measure);
    out->source = source_measured;
    out->ticks_per_second = rate_measured;
    read_together(CLOCK_REALTIME, &out->anchor_ticks, &out->anchor_unix_ns);
}
