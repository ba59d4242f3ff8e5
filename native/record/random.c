/* record/random.c -- see record/random.h. */
#define _GNU_SOURCE
#include "record/random.h"

#include <math.h>
#include <stdbool.h>
#include <sys/random.h>

#include "base/atomics.h"
#include "base/clock.h"

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* This process's seed from the operating system, drawn with its first thread; 0: not yet drawn.
 * Relaxed: no other memory depends on it. */
static uint64_t process_seed;

static uint64_t draw(void)
{
    uint64_t drawn;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != (ssize_t)sizeof drawn) {
        drawn = mix(opscope__monotonic_ns());
    }
    return drawn | 1;
}

static uint64_t seed_of_process(void)
{
    uint64_t found = opscope__load_relaxed(&process_seed);
    if (found == 0) {
        const uint64_t drawn = draw();
        /* Partner: the same exchange on other threads; the first one wins. */
        found = opscope__replace_relaxed(&process_seed, &found, drawn) ? drawn : found;
    }
    return found;
}

void opscope__random_seed(opscope__random *random, uint64_t seed, uint64_t stream)
{
    /* Mixed twice, so that neighbouring streams do not start at neighbouring states. */
    random->state = mix(mix(seed != 0 ? seed : seed_of_process()) ^ stream);
}

void opscope__random_fork_child(void)
{
    const uint64_t parents = opscope__load_relaxed(&process_seed);
    if (parents != 0) {
        opscope__store_relaxed(&process_seed, mix(parents ^ mix(opscope__ticks())) | 1);
    }
}

uint64_t opscope__random_next(opscope__random *random)
{
    random->state += 0x9e3779b97f4a7c15u;
    return mix(random->state);
}

double opscope__random_unit(opscope__random *random)
{
    return ((double)(opscope__random_next(random) >> 11) + 0.5) * 0x1p-53;
}

uint64_t opscope__random_countdown(opscope__random *random, double prob)
{
    double trials = floor(log(opscope__random_unit(random)) / log1p(-prob));
    return trials < 0x1p63 ? (uint64_t)trials + 1 : (uint64_t)1 << 63;
}
