/* tasks/pool.c -- the pool: threads that run queued jobs. fork.c and split.c define the jobs.
 *
 * After a piece of a split, a thread polls for the next one for a moment before it sleeps: waking a
 * sleeping thread takes longer than many pieces do. It polls a single word, which a post changes
 * after releasing the lock, so poster and poller do not contend for the lock.
 *
 * Linux usually wakes a thread on the processor where it went to sleep, even if the waking thread
 * is busy there and another processor is idle. (It does not search for an idle one if the
 * processors were busy recently, and libraries whose threads spin keep them busy.) The two threads
 * would then take turns for as long as the pool is used. Therefore a thread that sleeps on the
 * waker's processor is first bound to the other processors, then woken; once it runs, it may run
 * everywhere again. This takes three system calls, only in that case.
 */
#define _GNU_SOURCE
#include "tasks/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/fork.h"
#include "record/observer.h"

enum {
    THREAD_LIMIT = 256,
    SPIN_NS =
        50000, /* a few times the cost of a wake-up: the longest a thread polls after each split */
    SPIN_STEPS = 4
};

uint64_t opscope__pool_generation = 1;
int opscope__pool_expected;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER; /* for threads that wait for a job */
static struct opscope__job *first, *last;
static int queued_count;
static int thread_count;
static int busy_count; /* pool threads that run a job */
static int
    asleep_count; /* pool threads in the list of sleepers; the other idle ones poll post_count */
static int waiting_count; /* threads that wait for `finished` */
static int
    guest_count; /* other threads that work on a split; atomic, relaxed: any thread writes it */
static int wanted_threads; /* 0: the number of processors. Written under the lock, read relaxed */
static int
    found_processors; /* 0: not yet counted. Any thread, relaxed: all compute the same value */
static _Thread_local bool is_of_pool, is_at_work; /* counted in busy_count or guest_count */

/* A sleeping thread of the pool. It lies on the thread's stack, and pool threads never end. The
 * lock guards all fields. */
struct sleeper {
    struct sleeper *next;
    pthread_cond_t woken;
    pid_t thread;
    int processor; /* where it went to sleep */
    bool is_asleep;
    bool is_sent_away;
    cpu_set_t processors; /* its allowed processors, while it is kept off one */
};

static struct sleeper
    *sleepers; /* the thread that fell asleep last is first: its cache is the warmest */

/* Increases with every post, after the lock was released; relaxed. Idle threads poll it, relaxed;
 * the lock orders the queue itself. It has a cache line of its own because they read it
 * continually. */
static _Alignas(64) struct {
    uint32_t value;
    char rest[60];
} post_count;

void opscope__pool_lock(void)
{
    pthread_mutex_lock(&lock);
}

void opscope__pool_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void fork_child(void)
{
    /* The parent's threads and jobs do not exist here; its futures stay as they were. */
    first = last = NULL;
    sleepers = NULL;
    queued_count = asleep_count = waiting_count = opscope__pool_expected = 0;
    /* The task or piece that forked continues here. */
    thread_count = busy_count = is_of_pool ? 1 : 0;
    guest_count = is_at_work && !is_of_pool ? 1 : 0;
    opscope__pool_generation++;
    pthread_cond_init(&finished, NULL);
}

/* ---- how many --------------------------------------------------------------------------------- */

static int processors(void)
{
    int count = opscope__load_relaxed(&found_processors);
    if (count == 0) {
        cpu_set_t set;
        count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        count = count < THREAD_LIMIT ? count : THREAD_LIMIT;
        opscope__store_relaxed(&found_processors, count);
    }
    return count;
}

int opscope_pool_threads(void)
{
    int wanted = opscope__load_relaxed(&wanted_threads);
    return wanted != 0 ? wanted : processors();
}

int opscope_pool_set_threads(int count)
{
    if (count < 1 || count > THREAD_LIMIT) {
        return OPSCOPE_ERR_INVALID;
    }
    pthread_mutex_lock(&lock);
    opscope__store_relaxed(&wanted_threads, count);
    pthread_mutex_unlock(&lock);
    return OPSCOPE_OK;
}

int opscope__pool_places(void)
{
    int at_work = busy_count + opscope__load_relaxed(&guest_count) + opscope__pool_expected;
    int places = opscope_pool_threads() - at_work - (is_at_work ? 0 : 1);
    return places > 0 ? places : 0;
}

bool opscope__pool_enter(void)
{
    if (is_at_work) {
        return false;
    }
    is_at_work = true;
    opscope__add_relaxed(&guest_count, 1);
    return true;
}

void opscope__pool_leave(void)
{
    is_at_work = false;
    opscope__add_relaxed(&guest_count, -1);
}

int opscope_pool_free_threads(void)
{
    pthread_mutex_lock(&lock);
    int places = opscope__pool_places();
    pthread_mutex_unlock(&lock);
    return places + 1;
}

/* ---- the threads ------------------------------------------------------------------------------ */

bool opscope__pool_spin(uint64_t *started)
{
    if (opscope_pool_threads() > processors()) {
        return false; /* spinning would take time from the other threads */
    }
    for (int i = 0; i < SPIN_STEPS; i++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    }
    uint64_t now = opscope__monotonic_ns();
    *started = *started != 0 ? *started : now;
    return now - *started < SPIN_NS;
}

/* With the lock held; releases it meanwhile. Returns after a post, or when the time limit has
 * passed. */
static void poll_for_post(void)
{
    uint32_t seen = opscope__load_relaxed(&post_count.value);
    uint64_t started = 0;
    pthread_mutex_unlock(&lock);
    while (opscope__load_relaxed(&post_count.value) == seen && opscope__pool_spin(&started)) {
    }
    pthread_mutex_lock(&lock);
}

/* With the lock held; releases it while the thread sleeps. */
static void sleep_until_woken(struct sleeper *self)
{
    self->processor = sched_getcpu();
    self->is_asleep = true;
    self->next = sleepers;
    sleepers = self;
    asleep_count++;
    while (self->is_asleep) {
        pthread_cond_wait(&self->woken, &lock);
    }
    if (self->is_sent_away) {
        self->is_sent_away = false;
        sched_setaffinity(0, sizeof self->processors, &self->processors);
    }
}

/* With the lock held. The caller signals the thread after it releases the lock. */
static struct sleeper *take_sleeper(int processor)
{
    struct sleeper *sleeper = sleepers;
    sleepers = sleeper->next;
    asleep_count--;
    sleeper->is_asleep = false;
    cpu_set_t *all = &sleeper->processors;
    if (sleeper->processor == processor &&
        sched_getaffinity(sleeper->thread, sizeof *all, all) == 0 && CPU_COUNT(all) > 1) {
        cpu_set_t others = *all;
        CPU_CLR((size_t)processor, &others);
        sleeper->is_sent_away = sched_setaffinity(sleeper->thread, sizeof others, &others) == 0;
    }
    return sleeper;
}

static void *work(void *unused)
{
    (void)unused;
    is_of_pool = true;
    struct sleeper self = {.thread = (pid_t)syscall(SYS_gettid)};
    pthread_cond_init(&self.woken, NULL);
    bool more_is_likely = false;
    pthread_mutex_lock(&lock);
    for (;;) {
        if (first == NULL && more_is_likely) {
            poll_for_post();
        }
        while (first == NULL) {
            sleep_until_woken(&self);
        }
        busy_count++;
        is_at_work = true;
        more_is_likely = first->run(first);
        is_at_work = false;
        busy_count--;
    }
    return NULL;
}

/* With the lock held. A failure is not an error: the thread that waits for the job runs it. */
static bool add_thread(void)
{
    /* Signals are for the program's own threads. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    bool is_made = pthread_create(&thread, &attributes, work, NULL) == 0;
    thread_count += is_made;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_made;
}

/* ---- jobs ------------------------------------------------------------------------------------- */

static void put_in(struct opscope__job *job, bool is_urgent)
{
    job->previous = is_urgent ? NULL : last;
    job->next = is_urgent ? first : NULL;
    *(job->previous != NULL ? &job->previous->next : &first) = job;
    *(job->next != NULL ? &job->next->previous : &last) = job;
    queued_count++;
}

void opscope__pool_take_out(struct opscope__job *job)
{
    *(job->previous != NULL ? &job->previous->next : &first) = job->next;
    *(job->next != NULL ? &job->next->previous : &last) = job->previous;
    queued_count--;
}

void opscope__pool_post(struct opscope__job *job, int threads, bool is_urgent)
{
    put_in(job, is_urgent);
    int idle = thread_count - busy_count, needed = queued_count - 1 + threads;
    int limit = opscope_pool_threads();
    int to_wake = needed - (idle - asleep_count); /* awake threads poll before they sleep */
    while (idle < needed && thread_count < limit && add_thread()) {
        idle++;
    }
    struct sleeper *woken[THREAD_LIMIT];
    int woken_count = 0, processor = to_wake > 0 && asleep_count > 0 ? sched_getcpu() : -1;
    while (woken_count < to_wake && sleepers != NULL) {
        woken[woken_count++] = take_sleeper(processor);
    }
    pthread_mutex_unlock(&lock);
    opscope__add_relaxed(&post_count.value, 1);
    for (int i = 0; i < woken_count; i++) {
        pthread_cond_signal(&woken[i]->woken);
    }
}

void opscope__pool_await(void)
{
    waiting_count++;
    pthread_cond_wait(&finished, &lock);
    waiting_count--;
}

void opscope__pool_finished(void)
{
    if (waiting_count > 0) {
        pthread_cond_broadcast(&finished);
    }
}

static const struct opscope__observer observer = {.fork_prepare = opscope__pool_lock,
                                                  .fork_child = fork_child,
                                                  .fork_unlock = opscope__pool_unlock};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_TASKS, &observer);
}
