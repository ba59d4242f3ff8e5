/* recorder/outer_variance.c -- see recorder/outer_variance.h. */
#include "recorder/outer_variance.h"

#include <stddef.h>
#include <string.h>

#include "base/atomics.h"

enum { OUTER_KEYS = 64 };

/* By key, in order of arrival; the last entry is for all keys without one. */
static struct {
    uint64_t key;  /* 0: free; claimed once, until the next segment; relaxed */
    uint64_t bits; /* of a double, the sum; relaxed, because it is independent of other memory */
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

void opscope__outer_variance_add(uint64_t key, double self_ticks_squared)
{
    uint64_t *bits = &outer[place_of(key)].bits;
    uint64_t before = opscope__load_relaxed(bits), after;
    do {
        const double sum = value_of(before) + self_ticks_squared;
        memcpy(&after, &sum, sizeof after);
    } while (!opscope__replace_relaxed(bits, &before, after));
}

double opscope__outer_variance(uint64_t key)
{
    for (size_t at = 0; at < OUTER_KEYS; at++) {
        if (at == OUTER_KEYS - 1 || opscope__load_relaxed(&outer[at].key) == key) {
            return value_of(opscope__load_relaxed(&outer[at].bits));
        }
    }
    return 0.0;
}

void opscope__outer_variances_forget(void)
{
    for (size_t at = 0; at < OUTER_KEYS; at++) {
        opscope__store_relaxed(&outer[at].bits, 0);
        opscope__store_relaxed(&outer[at].key, 0);
    }
}
