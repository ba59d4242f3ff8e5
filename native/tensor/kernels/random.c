/* tensor/kernels/random.c -- the process's sequence of random numbers, and a thread's own. */
#include "tensor/kernels/random.h"

#include <stdbool.h>
#include <sys/random.h>

#include "base/atomics.h"
#include "opscope/tensor.h"

/* Any thread writes it: add_relaxed takes a range of numbers, a seed stores. 0: not seeded yet. */
static uint64_t counter;

/* The thread's own sequence, while it has one. */
static _Thread_local struct {
    bool is_used;
    uint64_t counter;
} own;

static uint64_t seeded(uint64_t seed)
{
    opscope__stretch mixed = {seed};
    return opscope__draw_bits(&mixed) | 1;
}

void opscope_tensor_seed(uint64_t seed)
{
    opscope__store_relaxed(&counter, seeded(seed));
}

static void seed_by_system(void)
{
    uint64_t seed, unseeded = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
        seed = (uint64_t)(uintptr_t)&seed;
    }
    opscope__replace_relaxed(&counter, &unseeded, seed | 1);
}

uint64_t opscope__random_state(void)
{
    if (opscope__load_relaxed(&counter) == 0) {
        seed_by_system();
    }
    return opscope__load_relaxed(&counter);
}

void opscope__random_set_state(uint64_t state)
{
    opscope__store_relaxed(&counter, state | 1);
}

uint64_t opscope__random_begin(uint64_t seed)
{
    return seeded(seed);
}

void opscope__random_use_own(uint64_t state)
{
    own.is_used = true;
    own.counter = state;
}

uint64_t opscope__random_end_own(void)
{
    own.is_used = false;
    return own.counter;
}

opscope__stretch opscope__stretch_take(uint64_t count)
{
    uint64_t step = 2 * count * 0x9E3779B97F4A7C15u;
    if (own.is_used) {
        opscope__stretch stretch = {own.counter};
        own.counter += step;
        return stretch;
    }
    if (opscope__load_relaxed(&counter) == 0) {
        seed_by_system();
    }
    return (opscope__stretch){opscope__add_relaxed(&counter, step)};
}

uint64_t opscope_tensor_draw_seed(void)
{
    opscope__stretch stretch = opscope__stretch_take(1);
    return opscope__draw_bits(&stretch);
}
