/* tensor/memory/block.c -- each thread's free lists of small blocks. */
#include "tensor/memory/block.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { KEPT_LIMIT = OPSCOPE__KEEPS_MEMORY ? 256 : 0 };

enum { CLASS_COUNT = OPSCOPE__BLOCK_LIMIT / OPSCOPE__BLOCK_ALIGNMENT };

struct block {
    struct block *next;
};

/* Owner: the thread. */
static _Thread_local struct {
    struct block *first[CLASS_COUNT];
    int count[CLASS_COUNT];
    bool has_destructor;
    bool is_closed; /* the thread's destructor has run: keep no more blocks */
} kept;

static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_exists;

static void free_all(void *unused)
{
    (void)unused;
    kept.is_closed = true;
    for (int i = 0; i < CLASS_COUNT; i++) {
        while (kept.first[i] != NULL) {
            struct block *next = kept.first[i]->next;
            free(kept.first[i]);
            kept.first[i] = next;
        }
        kept.count[i] = KEPT_LIMIT;
    }
}

static void make_key(void)
{
    key_exists = pthread_key_create(&key, free_all) == 0;
}

static size_t class_of(size_t bytes)
{
    return bytes != 0 ? (bytes - 1) / OPSCOPE__BLOCK_ALIGNMENT : 0;
}

static void *allocate(size_t bytes)
{
    size_t rounded = (class_of(bytes) + 1) * OPSCOPE__BLOCK_ALIGNMENT;
    return aligned_alloc(OPSCOPE__BLOCK_ALIGNMENT, rounded);
}

void *opscope__block_take(size_t bytes)
{
    if (bytes > OPSCOPE__BLOCK_LIMIT) {
        return allocate(bytes);
    }
    size_t i = class_of(bytes);
    struct block *block = kept.first[i];
    if (block == NULL) {
        return allocate(bytes);
    }
    kept.first[i] = block->next;
    kept.count[i]--;
    return block;
}

/* True if this thread may keep blocks, because a destructor will free them when it ends. */
static bool __attribute__((noinline)) arrange_destructor(void)
{
    pthread_once(&key_once, make_key);
    kept.has_destructor = key_exists && !kept.is_closed && pthread_setspecific(key, &kept) == 0;
    return kept.has_destructor;
}

void opscope__block_give(void *pointer, size_t bytes)
{
    if (bytes <= OPSCOPE__BLOCK_LIMIT) {
        size_t i = class_of(bytes);
        if (kept.count[i] < KEPT_LIMIT && (kept.has_destructor || arrange_destructor())) {
            struct block *block = pointer;
            block->next = kept.first[i];
            kept.first[i] = block;
            kept.count[i]++;
            return;
        }
    }
    free(pointer);
}
