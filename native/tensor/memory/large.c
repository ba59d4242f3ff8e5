/* tensor/memory/large.c -- large blocks; keeps the last ones released for the next request of their
 * size. */
#define _GNU_SOURCE
#include "tensor/memory/large.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PAGE = 4096,                  /* bytes, at least; blocks are multiples of 16 KiB */
    HUGE_LEAST = 4 * 1024 * 1024, /* from this size on it requests huge pages, like NumPy */
    HUGE_PAGE = 2 * 1024 * 1024,
    KEPT_LIMIT = 64 /* number of blocks; the limit in bytes: */
};

#define KEPT_LIMIT_BYTES ((size_t)64 << 20)

struct block {
    void *data;
    size_t bytes;
};

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER;        /* guards the kept blocks; no other lock is taken inside */
static struct block kept[KEPT_LIMIT]; /* oldest first */
static int kept_count;
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

/* The size of a block for `bytes`: eight sizes per power of two, so that tensors of similar size
 * share blocks; whole huge pages if those are requested. 0: larger than any block. */
static size_t size_of(size_t bytes)
{
    if (bytes > PTRDIFF_MAX - HUGE_PAGE) {
        return 0;
    }
    size_t step = bytes >= HUGE_LEAST ? HUGE_PAGE : (size_t)1 << (60 - __builtin_clzll(bytes));
    return (bytes + step - 1) & ~(step - 1);
}

/* ---- of the system ---------------------------------------------------------------------------- */

static void *map(size_t bytes)
{
    size_t slack = bytes >= HUGE_LEAST ? HUGE_PAGE - PAGE : 0;
    char *start =
        mmap(NULL, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    if (slack == 0) {
        return start;
    }
    size_t before = -(uintptr_t)start & (HUGE_PAGE - 1);
    if (before > 0) {
        munmap(start, before);
    }
    if (slack > before) {
        munmap(start + before + bytes, slack - before);
    }
    madvise(start + before, bytes, MADV_HUGEPAGE);
    return start + before;
}

/* ---- kept blocks ------------------------------------------------------------------------------ */

static struct block take_out(int i)
{
    struct block block = kept[i];
    kept_count--;
    kept_bytes -= block.bytes;
    memmove(&kept[i], &kept[i + 1], (size_t)(kept_count - i) * sizeof *kept);
    return block;
}

static void *find(size_t bytes)
{
    void *data = NULL;
    hold();
    for (int i = kept_count - 1; i >= 0 && data == NULL;
         i--) { /* the last one may still be in a cache */
        if (kept[i].bytes == bytes) {
            data = take_out(i).data;
        }
    }
    let_go();
    return data;
}

/* Keeps a block, and frees the oldest ones above the limit, outside of the lock. */
static void keep(struct block block)
{
    struct block old[KEPT_LIMIT + 1];
    int old_count = 0;
    hold();
    while (kept_count == KEPT_LIMIT ||
           (kept_count > 0 && kept_bytes + block.bytes > KEPT_LIMIT_BYTES)) {
        old[old_count++] = take_out(0);
    }
    kept[kept_count++] = block;
    kept_bytes += block.bytes;
    let_go();
    for (int i = 0; i < old_count; i++) {
        munmap(old[i].data, old[i].bytes);
    }
}

void *opscope__large_take(size_t bytes)
{
    pthread_once(&forks_arranged, arrange_forks);
    size_t size = size_of(bytes);
    if (size == 0) {
        return NULL;
    }
    void *data = find(size);
    return data != NULL ? data : map(size);
}

void opscope__large_give(void *data, size_t bytes)
{
    struct block block = {data, size_of(bytes)};
    if (block.bytes <= KEPT_LIMIT_BYTES) {
        keep(block);
    } else {
        munmap(data, block.bytes);
    }
}
