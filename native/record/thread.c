/* record/thread.c -- the registry of threads: how a thread's state begins, is rebuilt and ends. */
#include "record/thread.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "base/fence.h"
#include "record/callback.h"
#include "record/debug_info.h"
#include "record/demand.h"
#include "record/process.h"
#include "record/range.h"
#include "record/recorder.h"

OPSCOPE__THREAD_LOCAL struct opscope__hot opscope__hot __attribute__((tls_model("initial-exec")));
uint64_t opscope__version = 1;

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static struct opscope__thread *threads; /* registry lock */
static struct opscope__firing *orphans; /* registry lock: firings that outlived their thread */
static uint64_t thread_count;           /* registry lock: threads ever seen */
static uint64_t seed;                   /* registry lock; 0: the operating system's */
static uint64_t ended_cpu_ns;           /* registry lock: processor time of threads that ended */

void opscope__registry_lock(void)
{
    pthread_mutex_lock(&registry);
}

void opscope__registry_unlock(void)
{
    pthread_mutex_unlock(&registry);
}

struct opscope__thread *opscope__registry_first(void)
{
    return threads;
}

struct opscope__firing *opscope__registry_orphans(void)
{
    return orphans;
}

void opscope__version_bump(void)
{
    /* Partner: the relaxed load of opscope_range_open; what changed is read under the lock. */
    opscope__store_release(&opscope__version, opscope__version + 1);
}

/* ---- processor time -------------------------------------------------------------------------- */

static uint64_t cpu_clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* By the thread itself. */
static void start_cpu_clock(struct opscope__thread *thread)
{
    pthread_getcpuclockid(pthread_self(), &thread->cpu_clock);
    thread->cpu_start_ns = cpu_clock_ns(thread->cpu_clock);
}

/* With the lock held: since it was started. */
static uint64_t cpu_ns(const struct opscope__thread *thread)
{
    const uint64_t now = cpu_clock_ns(thread->cpu_clock);
    return now > thread->cpu_start_ns ? now - thread->cpu_start_ns : 0;
}

uint64_t opscope__registry_cpu_ns(void)
{
    opscope__registry_lock();
    uint64_t sum = ended_cpu_ns;
    for (const struct opscope__thread *thread = threads; thread != NULL; thread = thread->next) {
        sum += cpu_ns(thread);
    }
    opscope__registry_unlock();
    return sum;
}

/* ---- firings that are done with ---------------------------------------------------------------- */

static void set_skips(uint64_t skip)
{
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        opscope__hot.skip[scope] = skip;
    }
}

/* With the lock held: frees a firing no range of which is open, else keeps it on `list`. */
static void retire(struct opscope__firing *firing, struct opscope__firing **list,
                   struct opscope__callback **dead)
{
    if (firing == NULL) {
        return;
    }
    if (opscope__firing_open_total(firing) == 0) {
        opscope__firing_destroy(firing, dead);
        return;
    }
    firing->next_stale = *list;
    *list = firing;
}

static void sweep(struct opscope__firing **list, struct opscope__callback **dead)
{
    struct opscope__firing **link = list;
    while (*link != NULL) {
        struct opscope__firing *firing = *link;
        if (opscope__firing_open_total(firing) == 0) {
            *link = firing->next_stale;
            opscope__firing_destroy(firing, dead);
        } else {
            link = &firing->next_stale;
        }
    }
}

void opscope__firing_sweep(struct opscope__thread *thread)
{
    struct opscope__callback *dead = NULL;
    opscope__registry_lock();
    if (thread != NULL) {
        sweep(&thread->stale, &dead);
    }
    sweep(&orphans, &dead);
    opscope__registry_unlock();
    opscope__callbacks_drop(dead);
}

/* With the lock held: gives up what a thread holds. Its open async ranges keep their firings. */
static void end_thread(struct opscope__thread *thread, struct opscope__callback **dead)
{
    struct opscope__firing *stale = thread->stale;
    while (stale != NULL) {
        struct opscope__firing *next = stale->next_stale;
        opscope__store_relaxed(&stale->owner, NULL);
        retire(stale, &orphans, dead);
        stale = next;
    }
    if (thread->firing != NULL) {
        opscope__store_relaxed(&thread->firing->owner, NULL);
        retire(thread->firing, &orphans, dead);
    }
    if (thread->local != NULL) {
        opscope__callback_list_release(thread->local, dead);
    }
}

static void free_thread(struct opscope__thread *thread)
{
    opscope__kept_ranges_free(thread->kept_ranges);
    opscope__debug_info_release(thread->debug_info);
    opscope__recorder_thread_free(thread->recorder);
    free(thread->trace);
    free(thread->inputs.items);
    free(thread->outputs.items);
    free(thread);
}

/* The destructor of `key`: runs as the thread ends. */
static void thread_ended(void *value)
{
    struct opscope__thread *thread = value;
    struct opscope__callback *dead = NULL;
    opscope__demand_thread_ends();
    opscope__recorder_thread_end(thread);
    opscope__hot = (struct opscope__hot){0};
    opscope__registry_lock();
    struct opscope__thread **link = &threads;
    while (*link != thread) {
        link = &(*link)->next;
    }
    *link = thread->next;
    ended_cpu_ns += cpu_ns(thread);
    const bool had_local = thread->local != NULL;
    end_thread(thread, &dead);
    opscope__registry_unlock();
    if (had_local) {
        opscope__demand_changed();
    }
    opscope__callbacks_drop(dead);
    free_thread(thread);
}

static void make_key(void)
{
    pthread_key_create(&key, thread_ended);
}

struct opscope__thread *opscope__thread_self(void)
{
    struct opscope__thread *thread = opscope__hot.thread;
    if (thread != NULL) {
        return thread;
    }
    opscope__process_start();
    pthread_once(&key_once, make_key);
    thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return NULL;
    }
    if (pthread_setspecific(key, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->recording = true;
    thread->debug_info = opscope__debug_info_root();
    start_cpu_clock(thread);
    opscope__registry_lock();
    thread->id = ++thread_count;
    opscope__random_seed(&thread->random, seed, thread->id);
    thread->next = threads;
    threads = thread;
    opscope__registry_unlock();
    opscope__hot.thread = thread;
    opscope__recorder_labels_changed(thread);
    return thread;
}

struct opscope__thread *opscope__thread_refresh(void)
{
    struct opscope__thread *thread = opscope__thread_self();
    struct opscope__callback *dead = NULL;
    opscope__registry_lock();
    opscope__hot.version = opscope__version;
    opscope__hot.solo = NULL;
    set_skips(UINT64_MAX);
    if (thread == NULL) {
        opscope__registry_unlock();
        return NULL;
    }
    bool empty = false;
    struct opscope__firing *firing = opscope__firing_create(thread, &empty);
    retire(thread->firing, &thread->stale, &dead);
    sweep(&thread->stale, &dead);
    thread->firing = firing;
    if (firing != NULL) {
        for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
            opscope__hot.skip[scope] = firing->lanes[scope].armed;
        }
        opscope__hot.solo = opscope__fence_is_symmetric ? NULL : firing;
    }
    opscope__registry_unlock();
    opscope__callbacks_drop(dead);
    opscope__recorder_labels_follow(thread);
    return thread;
}

void opscope__thread_reseed(struct opscope__thread *thread)
{
    opscope__random_seed(&thread->random, seed, thread->id);
}

void opscope_seed(uint64_t value)
{
    struct opscope__thread *thread = opscope__thread_self();
    opscope__registry_lock();
    seed = value;
    if (thread != NULL) {
        opscope__thread_reseed(thread);
    }
    opscope__registry_unlock();
    opscope__hot_invalidate();
}

uint64_t opscope_thread_id(void)
{
    struct opscope__thread *thread = opscope__thread_self();
    return thread != NULL ? thread->id : 0;
}

void opscope__registry_fork_child(void)
{
    struct opscope__thread *self = opscope__hot.thread;
    /* The others are leaked: each may have been in the middle of changing what is its own, and an
     * async range of its may yet be closed here. */
    threads = NULL;
    orphans = NULL;
    ended_cpu_ns = 0;
    if (self != NULL) {
        self->next = NULL;
        threads = self;
        start_cpu_clock(self); /* it is another thread now, whose clock begins anew */
        opscope__thread_reseed(self);
        opscope__hot_invalidate();
    }
}
