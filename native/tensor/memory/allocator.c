/* tensor/memory/allocator.c -- the default allocator, the counters of all allocators, and the plain
 * allocator, which uses block.c for small blocks and large.c for large ones. caching.c has the
 * caching one. */
#include "tensor/memory/allocator.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/memory.h"
#include "opscope/metric.h"
#include "tensor/memory/block.h"
#include "tensor/memory/large.h"

enum {
    KNOWN_LIMIT = 16 /* with their own counters; the last entry counts all others */
};

/* ---- plain memory --------------------------------------------------------------------------- */

static bool is_large(size_t bytes)
{
    return bytes >= OPSCOPE__LARGE_LEAST && OPSCOPE__KEEPS_MEMORY;
}

static void *plain_allocate(void *user, size_t bytes)
{
    (void)user;
    return is_large(bytes) ? opscope__large_take(bytes) : opscope__block_take(bytes);
}

static void plain_release(void *user, void *data, size_t bytes)
{
    (void)user;
    if (is_large(bytes)) {
        opscope__large_give(data, bytes);
    } else {
        opscope__block_give(data, bytes);
    }
}

static const opscope_allocator plain = {"cpu", plain_allocate, plain_release, NULL};

const opscope_allocator *opscope_allocator_cpu(void)
{
    return &plain;
}

/* set_default writes it with release, every allocation reads it with acquire. */
static const opscope_allocator *chosen = &plain;

void opscope_allocator_set_default(const opscope_allocator *allocator)
{
    opscope__store_release(&chosen, allocator != NULL ? allocator : &plain);
}

const opscope_allocator *opscope_allocator_default(void)
{
    return opscope__load_acquire(&chosen);
}

/* ---- counters ------------------------------------------------------------------------------- */

struct counters {
    const opscope_allocator *allocator; /* set once, with release */
    opscope_metric allocated, live, peak;
    uint64_t allocation_count; /* atomic, relaxed: any thread */
};

static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER; /* of new entries */
static struct counters known[KNOWN_LIMIT];

static void register_metrics(struct counters *counters, const char *name)
{
    /* A metric that is refused for its name still counts. */
    (void)opscope_metric_register(&counters->allocated, "opscope.memory.allocated", name,
                                  OPSCOPE_METRIC_COUNTER);
    (void)opscope_metric_register(&counters->live, "opscope.memory.live", name,
                                  OPSCOPE_METRIC_GAUGE);
    (void)opscope_metric_register(&counters->peak, "opscope.memory.peak", name,
                                  OPSCOPE_METRIC_PEAK);
}

static struct counters *add_known(const opscope_allocator *allocator)
{
    int i = 0;
    pthread_mutex_lock(&known_lock);
    while (i < KNOWN_LIMIT - 1 && known[i].allocator != NULL && known[i].allocator != allocator) {
        i++;
    }
    if (known[i].allocator == NULL) {
        register_metrics(&known[i], i < KNOWN_LIMIT - 1 ? allocator->name : "other");
        /* Partner: the acquire in counters_of. */
        opscope__store_release(&known[i].allocator, allocator);
    }
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
            return add_known(allocator);
        }
    }
    return &known[KNOWN_LIMIT - 1];
}

void opscope_allocator_read_stats(const opscope_allocator *allocator, opscope_allocator_stats *out)
{
    struct counters *counters = counters_of(allocator);
    out->allocated_bytes = opscope_metric_read(&counters->allocated);
    out->live_bytes = opscope_metric_read(&counters->live);
    out->peak_bytes = opscope_metric_read(&counters->peak);
    out->allocation_count = opscope__load_relaxed(&counters->allocation_count);
}

void opscope_allocator_reset_peak(const opscope_allocator *allocator)
{
    struct counters *counters = counters_of(allocator);
    opscope_metric_set(&counters->peak, opscope_metric_read(&counters->live));
    /* Includes allocations by other threads meanwhile. */
    opscope_metric_raise(&counters->peak, opscope_metric_read(&counters->live));
}

const opscope_allocator *opscope_allocator_find(const char *name)
{
    const opscope_allocator *const built_in[] = {&plain, opscope_allocator_caching()};
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) {
        if (strcmp(built_in[i]->name, name) == 0) {
            return built_in[i];
        }
    }
    for (int i = 0; i < KNOWN_LIMIT; i++) {
        const opscope_allocator *here = opscope__load_acquire(&known[i].allocator);
        if (here != NULL && strcmp(here->name, name) == 0) {
            return here;
        }
    }
    return NULL;
}

int opscope_allocator_register(const opscope_allocator *allocator)
{
    const opscope_allocator *namesake = opscope_allocator_find(allocator->name);
    if (namesake != NULL && namesake != allocator) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "there is an allocator \"%s\" already",
                                   allocator->name);
    }
    return counters_of(allocator)->allocator == allocator
               ? OPSCOPE_OK
               : opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "more than %d allocators", KNOWN_LIMIT);
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
    struct counters *counters = counters_of(allocator);
    opscope_metric_add(&counters->allocated, bytes);
    opscope__add_relaxed(&counters->allocation_count, 1);
    opscope_metric_raise(&counters->peak, opscope_metric_add(&counters->live, bytes));
    opscope_note_allocation(bytes);
    *used = allocator;
    return data;
}

void opscope__memory_give(const opscope_allocator *allocator, void *data, size_t bytes)
{
    opscope_metric_add(&counters_of(allocator)->live, -(uint64_t)bytes);
    allocator->release(allocator->user, data, bytes);
}
