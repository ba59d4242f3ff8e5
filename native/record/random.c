/* record/random.c -- see record/random.h. */
#define _GNU_SOURCE
#include "record/random.h"

#include <math.h>
#include <sys/random.h>
#include <time.h>

static uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

void opscope__random_seed(opscope__random *random, uint64_t seed, uint64_t stream)
{
    if (seed != 0) {
        /* Twice mixed, so that neighbouring streams do not start on neighbouring states. */
        random->state = mix(mix(seed) ^ stream);
        return;
    }
    uint64_t state;
    if (getrandom(&state, sizeof state, GRND_NONBLOCK) != (ssize_t)sizeof state) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        state = mix((uint64_t)now.tv_nsec ^ mix((uint64_t)now.tv_sec ^ mix(stream)));
    }
    random->state = state;
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
