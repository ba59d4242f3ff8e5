/* base/real_time.c -- see base/real_time.h. */
#define _GNU_SOURCE
#include "base/real_time.h"

#include <dlfcn.h>
#include <stddef.h>

enum { SECOND_NS = 1000000000 };

typedef int (*timed_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
typedef int (*sleep_for)(const struct timespec *, struct timespec *);

int (*opscope__clock_gettime)(clockid_t id, struct timespec *now) = clock_gettime;
static timed_wait wait_on = pthread_cond_timedwait;
static sleep_for sleep_once = nanosleep;

#if defined(__has_feature)
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif

static __attribute__((constructor(101))) void find(void)
{
    void *library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        return;
    }
    void *clock = dlsym(library, "clock_gettime");
    void *wait = dlsym(library, "pthread_cond_timedwait");
    void *sleep = dlsym(library, "nanosleep");
    if (clock != NULL && wait != NULL && sleep != NULL) {
        opscope__clock_gettime = (int (*)(clockid_t, struct timespec *))clock;
        sleep_once = (sleep_for)sleep;
#if !defined(__SANITIZE_THREAD__) && !HAS_FEATURE(thread_sanitizer)
        wait_on = (timed_wait)wait; /* the thread sanitizer must see what it does to the lock */
#endif
    }
    dlclose(library);
}

uint64_t opscope__clock_ns(clockid_t id)
{
    struct timespec now = {0};
    opscope__clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

int opscope__cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND_NS),
                                   .tv_nsec = (long)(until_ns % SECOND_NS)};
    return wait_on(condition, lock, &until);
}

void opscope__sleep(uint32_t ns)
{
    const struct timespec time = {.tv_nsec = (long)ns};
    sleep_once(&time, NULL);
}
