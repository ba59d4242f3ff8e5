/* tensor/kernels/random.c -- the process's sequence of random numbers. */
#include "tensor/kernels/random.h"

#include <sys/random.h>

#include "base/atomics.h"
#include "opscope/tensor.h"

/* Any thread writes it: add_relaxed takes a range of numbers, a seed stores. 0: not seeded yet. */
static uint64_t counter;

void opscope_tensor_seed(uint64_t seed)
{
    opscope__stretch mixed = {seed};
    opscope__store_relaxed(&counter, opscope__draw_bits(&mixed) | 1);
}

static void seed_by_system(void)
{
    uint64_t seed, unseeded = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
        seed = (uint64_t)(uintptr_t)&seed;
    }
    opscope__replace_relaxed(&counter, &unseeded, seed | 1);
}

opscope__stretch opscope__stretch_take(uint64_t count)
{
    if (opscope__load_relaxed(&counter) == 0) {
        seed_by_system();
    }
    uint64_t step = 2 * count * 0x9E3779B97F4A7C15u;
    return (opscope__stretch){opscope__add_relaxed(&counter, step)};
}

uint64_t opscope_tensor_draw_seed(void)
{
    opscope__stretch stretch = opscope__stretch_take(1);
    return opscope__draw_bits(&stretch);
}
