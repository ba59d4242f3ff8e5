/* record/usage.c -- the once-per-process API-usage log. */
#include "record/usage.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomics.h"
#include "record/observer.h"

enum { KEY_LIMIT = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *keys[KEY_LIMIT]; /* each is written once, then published by key_count */
static size_t
    key_count; /* store_release under the lock; load_acquire by readers without the lock */
static opscope_usage_handler handler;                   /* lock */
static void *handler_user;                              /* lock */
static opscope_usage_metadata_handler metadata_handler; /* lock */
static void *metadata_user;                             /* lock */

static void take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

/* With the lock held: keeps `key` and returns true if it is new. A call site reports a key once in
 * a process's life and remembers that it did, so a linear search through the few keys is cheap
 * enough. */
static bool keep(const char *key)
{
    for (size_t i = 0; i < key_count; i++) {
        if (strcmp(keys[i], key) == 0) {
            return false;
        }
    }
    size_t bytes = strlen(key) + 1;
    char *copy = key_count < KEY_LIMIT ? malloc(bytes) : NULL;
    if (copy == NULL) {
        return false;
    }
    keys[key_count] = memcpy(copy, key, bytes);
    opscope__store_release(&key_count, key_count + 1); /* partner: opscope_api_usage_key */
    return true;
}

struct opscope__usage_listener opscope__usage_log(const char *key)
{
    opscope__process_start();
    take_lock();
    bool is_new = keep(key);
    struct opscope__usage_listener listener = {handler, handler_user};
    give_lock();
    if (!is_new) {
        return (struct opscope__usage_listener){NULL, NULL};
    }
    const char *wanted = getenv("OPSCOPE_API_USAGE_STDERR");
    if (wanted != NULL && strcmp(wanted, "1") == 0) {
        dprintf(STDERR_FILENO, "OPSCOPE_API_USAGE %s\n", key);
    }
    opscope__observers_api_used();
    return listener;
}

void opscope_log_api_usage_once(const char *key)
{
    struct opscope__usage_listener listener = opscope__usage_log(key);
    if (listener.handler != NULL) {
        listener.handler(key, listener.user);
    }
}

void opscope_set_api_usage_handler(opscope_usage_handler new_handler, void *user)
{
    opscope__process_start();
    take_lock();
    handler = new_handler;
    handler_user = user;
    size_t said = key_count; /* the new handler gets later keys directly */
    give_lock();
    for (size_t i = 0; new_handler != NULL && i < said; i++) {
        new_handler(keys[i], user);
    }
}

struct opscope__usage_metadata_listener opscope__usage_metadata_listener(void)
{
    opscope__process_start();
    take_lock();
    struct opscope__usage_metadata_listener listener = {metadata_handler, metadata_user};
    give_lock();
    return listener;
}

void opscope_log_api_usage_metadata(const char *context, const char *key, const char *value)
{
    struct opscope__usage_metadata_listener listener = opscope__usage_metadata_listener();
    if (listener.handler != NULL) {
        listener.handler(context, key, value, listener.user);
    }
}

void opscope_set_api_usage_metadata_handler(opscope_usage_metadata_handler new_handler, void *user)
{
    opscope__process_start();
    take_lock();
    metadata_handler = new_handler;
    metadata_user = user;
    give_lock();
}

const char *opscope_api_usage_key(size_t index)
{
    return index < opscope__load_acquire(&key_count) ? keys[index] : NULL;
}

static const struct opscope__observer observer = {.fork_prepare = take_lock,
                                                  .fork_unlock = give_lock};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_USAGE, &observer);
}
