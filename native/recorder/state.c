/* recorder/state.c -- the recorder's state, and the lock of its settings. */
#include "recorder/state.h"

#include <pthread.h>

struct opscope__recorder opscope__recorder;

static pthread_mutex_t settings = PTHREAD_MUTEX_INITIALIZER;

void opscope__settings_lock(void)
{
    pthread_mutex_lock(&settings);
}

bool opscope__settings_trylock(void)
{
    return pthread_mutex_trylock(&settings) == 0;
}

void opscope__settings_unlock(void)
{
    pthread_mutex_unlock(&settings);
}
