/* recorder/outer_variance.c -- see recorder/outer_variance.h. */
#include "recorder/outer_variance.h"

#include <stddef.h>
#include <string.h>

#include "base/atomics.h"

enum { OUTER_KEYS = 64 };

/* By key, in order of arrival; the last entry is for all keys without one. */
static struct {
    uint64_t key;  /* 0: free; claimed once, until the next segment; relaxed */
    uint64_t bits; /* of a double, the variance; relaxed: independent of other memory */
    uint64_t exact_ticks, estimated_ticks; /* relaxed, likewise */
} outer[OUTER_KEYS];

static size_t place_of(uint64_t key)
{
    size_t at = 0;
    for (; at < OUTER_KEYS - 1; at++) {
        uint64_t found = opscope__load_relaxed(&outer[at].key);
        /* Partner: the same exchange on other threads; one of them gets the entry. */
        if (found == 0 && opscope__replace_relaxed(&outer[at].key, &found, key)) {
            found = key;
        }
        if (found == key) {
            break;
        }
    }
    return at;
}

static double value_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void add_to(uint64_t *bits, double variance)
{
    uint64_t before = opscope__load_relaxed(bits), after;
    do {
        const double sum = value_of(before) + variance;
        memcpy(&after, &sum, sizeof after);
    } while (!opscope__replace_relaxed(bits, &before, after));
}

void opscope__outer_inside_add(uint64_t key, uint64_t exact_ticks, uint64_t estimated_ticks,
                               uint32_t serials)
{
    const size_t at = place_of(key);
    if (exact_ticks != 0) {
        opscope__add_relaxed(&outer[at].exact_ticks, exact_ticks);
    }
    if (estimated_ticks != 0) {
        /* The serial grows by 4 for each window. */
        const double estimated = (double)estimated_ticks;
        opscope__add_relaxed(&outer[at].estimated_ticks, estimated_ticks);
        add_to(&outer[at].bits, estimated * estimated / (double)(serials / 4 + 1));
    }
}

struct opscope__outer_inside opscope__outer_inside(uint64_t key)
{
    size_t at = 0;
    while (at < OUTER_KEYS - 1 && opscope__load_relaxed(&outer[at].key) != key) {
        at++;
    }
    return (struct opscope__outer_inside){
        .variance = value_of(opscope__load_relaxed(&outer[at].bits)),
        .exact_ticks = opscope__load_relaxed(&outer[at].exact_ticks),
        .estimated_ticks = opscope__load_relaxed(&outer[at].estimated_ticks)};
}

void opscope__outer_inside_forget(void)
{
    for (size_t at = 0; at < OUTER_KEYS; at++) {
        opscope__store_relaxed(&outer[at].exact_ticks, 0);
        opscope__store_relaxed(&outer[at].estimated_ticks, 0);
        opscope__store_relaxed(&outer[at].bits, 0);
        opscope__store_relaxed(&outer[at].key, 0);
    }
}
