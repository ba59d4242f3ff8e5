/* tensor/memory/caching.c -- the allocator that keeps freed blocks by size: at most 256 MiB, in
 * size classes about an eighth apart. All threads share the blocks. */
#include <pthread.h>
#include <stdlib.h>

#include "opscope/tensor.h"

enum { ALIGNMENT = 64, STEPS_PER_OCTAVE = 8, LEAST_SHIFT = 9, CLASS_COUNT = 8 * 40 };

#define KEPT_LIMIT_BYTES ((size_t)256 << 20)

struct kept {
    struct kept *next;
};

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* guards the kept blocks; no other lock is taken inside */
static struct kept *first[CLASS_COUNT];
static size_t kept_bytes;
static pthread_once_t forks_arranged = PTHREAD_ONCE_INIT;

static void hold(void)
{
    pthread_mutex_lock(&lock);
}

static void let_go(void)
{
    pthread_mutex_unlock(&lock);
}

/* Holds the lock during a fork, so that the child finds the kept blocks consistent and the lock
 * free. */
static void arrange_forks(void)
{
    pthread_atfork(hold, let_go, let_go);
}

/* The class of a size, with the size of its blocks in *rounded; -1: too large to keep. */
static int class_of(size_t bytes, size_t *rounded)
{
    size_t least = (size_t)1 << LEAST_SHIFT;
    size_t wanted = bytes > least ? bytes - 1 : least - 1;
    int shift = 63 - __builtin_clzll(wanted) - 3;
    int octave = shift + 3 - LEAST_SHIFT + 1;
    size_t step = (wanted >> shift) + 1; /* between 9 and 16 */
    *rounded = (step << shift) + ALIGNMENT - 1;
    *rounded &= ~(size_t)(ALIGNMENT - 1);
    int found = octave * STEPS_PER_OCTAVE + (int)step - STEPS_PER_OCTAVE - 1;
    return found < CLASS_COUNT ? found : -1;
}

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    pthread_once(&forks_arranged, arrange_forks);
    size_t rounded;
    int class = class_of(bytes, &rounded);
    if (class >= 0) {
        hold();
        struct kept *block = first[class];
        if (block != NULL) {
            first[class] = block->next;
            kept_bytes -= rounded;
        }
        let_go();
        if (block != NULL) {
            return block;
        }
    }
    return aligned_alloc(ALIGNMENT, rounded);
}

static void release(void *user, void *data, size_t bytes)
{
    (void)user;
    size_t rounded;
    int class = class_of(bytes, &rounded);
    bool kept = false;
    if (class >= 0) {
        hold();
        kept = kept_bytes + rounded <= KEPT_LIMIT_BYTES;
        if (kept) {
            struct kept *block = data;
            block->next = first[class];
            first[class] = block;
            kept_bytes += rounded;
        }
        let_go();
    }
    if (!kept) {
        free(data);
    }
}

static const opscope_allocator caching = {"caching", allocate, release, NULL};

const opscope_allocator *opscope_allocator_caching(void)
{
    return &caching;
}
