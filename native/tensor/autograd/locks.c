/* tensor/autograd/locks.c -- the tape's locks, and their life across a fork of the process. */
#include "tensor/autograd/locks.h"

#include <pthread.h>
#include <stdint.h>

#include "opscope/tensor.h"

enum { SUM_LOCK_COUNT = 32 };

static pthread_mutex_t tape = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sums[SUM_LOCK_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local const void *summing; /* the owner whose sum lock this thread holds */

/* Runs in the child. No thread of the child holds a sum lock. A gradient that a thread of the
 * parent was adding to is undefined, like any memory that such a thread was writing. */
static void forget_sums(void)
{
    for (int i = 0; i < SUM_LOCK_COUNT; i++) {
        pthread_mutex_init(&sums[i], NULL);
    }
    summing = NULL;
    pthread_mutex_unlock(&tape);
}

static void start(void)
{
    for (int i = 0; i < SUM_LOCK_COUNT; i++) {
        pthread_mutex_init(&sums[i], NULL);
    }
    /* The fork takes the tape lock, but not the sum locks: their holder may wait for a lock of the
     * forking thread. */
    pthread_atfork(opscope__tape_lock, opscope__tape_unlock, forget_sums);
}

void opscope__tape_lock(void)
{
    pthread_once(&once, start);
    pthread_mutex_lock(&tape);
}

void opscope__tape_unlock(void)
{
    pthread_mutex_unlock(&tape);
}

static pthread_mutex_t *sum_of(const void *owner)
{
    return &sums[(uint32_t)((uintptr_t)owner >> 6) * 0x9E3779B9u >> 27];
}

int opscope__sum_lock(const void *owner)
{
    pthread_once(&once, start);
    if (summing != NULL) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_RUNTIME,
            "backward: called from a callback during the addition of a gradient; call "
            "it outside of callbacks");
    }
    pthread_mutex_lock(sum_of(owner));
    summing = owner;
    return OPSCOPE_OK;
}

void opscope__sum_unlock(const void *owner)
{
    summing = NULL;
    pthread_mutex_unlock(sum_of(owner));
}
