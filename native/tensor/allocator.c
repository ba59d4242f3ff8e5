/* tensor/allocator.c -- the default allocator, what every allocator has given out, and the plain one
 * over the C library. The caching one is caching.c. */
#define _GNU_SOURCE
#include "tensor/allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "tensor/block.h"

enum {
    KNOWN_LIMIT = 16,              /* allocators with counters of their own; the rest share one */
    HUGE_BYTES = 4 * 1024 * 1024,  /* from here on huge pages are asked for, as NumPy does */
    HUGE_ALIGNMENT = 2 * 1024 * 1024
};

/* ---- plain memory --------------------------------------------------------------------------- */

static void *plain_allocate(void *user, size_t bytes)
{
    (void)user;
    if (bytes < HUGE_BYTES) {
        return opscope__block_take(bytes);
    }
    size_t rounded = (bytes + HUGE_ALIGNMENT - 1) & ~(size_t)(HUGE_ALIGNMENT - 1);
    void *data = aligned_alloc(HUGE_ALIGNMENT, rounded);
    if (data != NULL) {
        madvise(data, rounded, MADV_HUGEPAGE);
    }
    return data;
}

static void plain_release(void *user, void *data, size_t bytes)
{
    (void)user;
    opscope__block_give(data, bytes);
}

static const opscope_allocator plain = {"cpu", plain_allocate, plain_release, NULL};

const opscope_allocator *opscope_allocator_cpu(void)
{
    return &plain;
}

/* Written by set_default with release, read by every allocation with acquire. */
static const opscope_allocator *chosen = &plain;

void opscope_allocator_set_default(const opscope_allocator *allocator)
{
    opscope__store_release(&chosen, allocator != NULL ? allocator : &plain);
}

/* ---- counters ------------------------------------------------------------------------------- */

/* Each field is written by any thread with relaxed read-modify-writes and read relaxed. */
struct counters {
    const opscope_allocator *allocator; /* set once, with release */
    opscope_allocator_stats stats;
};

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER; /* of new entries */
static struct counters known[KNOWN_LIMIT] = {{.allocator = &plain}};

static struct counters *add_known(const opscope_allocator *allocator)
{
    int i = 1;
    pthread_mutex_lock(&known_lock);
    while (i < KNOWN_LIMIT - 1 && known[i].allocator != NULL && known[i].allocator != allocator) {
        i++;
    }
    /* Partner: the acquire in counters_of. */
    opscope__store_release(&known[i].allocator, allocator);
    pthread_mutex_unlock(&known_lock);
    return &known[i];
}

static struct counters *counters_of(const opscope_allocator *allocator)
{
    for (int i = 0; i < KNOWN_LIMIT; i++) {
        const opscope_allocator *here = opscope__load_acquire(&known[i].allocator);
        if (here == allocator) {
            return &known[i];
        }
        if (here == NULL) {
            break;
        }
    }
    return add_known(allocator);
}

static void raise_peak(uint64_t *peak, uint64_t live)
{
    uint64_t seen = opscope__load_relaxed(peak);
    while (live > seen && !__atomic_compare_exchange_n(peak, &seen, live, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED)) {
    }
}

void opscope_allocator_read_stats(const opscope_allocator *allocator, opscope_allocator_stats *out)
{
    const opscope_allocator_stats *stats = &counters_of(allocator)->stats;
    out->allocated_bytes = opscope__load_relaxed(&stats->allocated_bytes);
    out->live_bytes = opscope__load_relaxed(&stats->live_bytes);
    out->peak_bytes = opscope__load_relaxed(&stats->peak_bytes);
    out->allocation_count = opscope__load_relaxed(&stats->allocation_count);
}

/* ---- for storages --------------------------------------------------------------------------- */

void *opscope__memory_take(const opscope_allocator *allocator, size_t bytes,
                           const opscope_allocator **used)
{
    if (allocator == NULL) {
        allocator = opscope__load_acquire(&chosen);
    }
    void *data = allocator->allocate(allocator->user, bytes);
    if (data == NULL) {
        return NULL;
    }
    opscope_allocator_stats *stats = &counters_of(allocator)->stats;
    opscope__add_relaxed(&stats->allocated_bytes, bytes);
    opscope__add_relaxed(&stats->allocation_count, 1);
    raise_peak(&stats->peak_bytes, opscope__add_relaxed(&stats->live_bytes, bytes) + bytes);
    *used = allocator;
    return data;
}

void opscope__memory_give(const opscope_allocator *allocator, void *data, size_t bytes)
{
    opscope__add_relaxed(&counters_of(allocator)->stats.live_bytes, -(uint64_t)bytes);
    allocator->release(allocator->user, data, bytes);
}
