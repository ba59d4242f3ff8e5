/* base/clock.c -- see base/clock.h. The rate is measured against CLOCK_MONOTONIC_RAW, which no time
 * daemon slews. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <pthread.h>

#include "opscope/segment.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Two readings, each good to some 20 ns, at least half a millisecond apart: a rate good to 0.01 %.
 * The first is taken as the library is loaded: what a process does between that and its first
 * segment mostly takes longer, so that nobody has to wait. One of long ago is not used, as the
 * counter may go on through a suspend and the clock does not. */
enum { MEASURE_NS = 500000, FIRST_READING_LASTS_NS = 100000000, READ_TRIES = 5 };

bool opscope__clock_is_counter = false;

static pthread_once_t measured = PTHREAD_ONCE_INIT;
static uint64_t source_measured;
static uint64_t rate_measured;
#if defined(__x86_64__)
static uint64_t first_ticks, first_ns; /* written by begin(), then within the once */
#endif

static uint64_t read_clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t opscope__monotonic_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

/* The counter and a clock at the same moment: of a few tries the one with the least in between. */
static void read_together(clockid_t id, uint64_t *ticks, uint64_t *ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < READ_TRIES; i++) {
        uint64_t before = opscope__ticks();
        uint64_t clock = read_clock_ns(id);
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
        return OPSCOPE_CLOCK_TSC;
    }
    return OPSCOPE_CLOCK_MONOTONIC;
#elif defined(__aarch64__)
    return OPSCOPE_CLOCK_CNTVCT;
#else
    return OPSCOPE_CLOCK_MONOTONIC;
#endif
}

static __attribute__((constructor)) void begin(void)
{
    source_measured = find_source();
    opscope__clock_is_counter = source_measured != OPSCOPE_CLOCK_MONOTONIC;
#if defined(__x86_64__)
    read_together(CLOCK_MONOTONIC_RAW, &first_ticks, &first_ns);
#endif
}

static void measure(void)
{
    rate_measured = 1000000000u;
    if (source_measured == OPSCOPE_CLOCK_MONOTONIC) {
        return;
    }
#if defined(__aarch64__)
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(rate_measured));
#elif defined(__x86_64__)
    uint64_t last_ticks = 0, last_ns = 0;
    read_together(CLOCK_MONOTONIC_RAW, &last_ticks, &last_ns);
    if (last_ns - first_ns > FIRST_READING_LASTS_NS) {
        first_ticks = last_ticks;
        first_ns = last_ns;
    }
    while (last_ns - first_ns < MEASURE_NS) {
        read_together(CLOCK_MONOTONIC_RAW, &last_ticks, &last_ns);
    }
    rate_measured =
        (uint64_t)((double)(last_ticks - first_ticks) * 1e9 / (double)(last_ns - first_ns));
#endif
}

void opscope__clock_start(opscope__clock *out)
{
    pthread_once(&measured, measure);
    out->source = source_measured;
    out->ticks_per_second = rate_measured;
    read_together(CLOCK_REALTIME, &out->anchor_ticks, &out->anchor_unix_ns);
}
