/* record/thread.c -- the registry of threads: how a thread's state begins and ends, and the
 * threads' CPU time. */
#include "record/thread.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "base/real_time.h"
#include "record/observer.h"

OPSCOPE__THREAD_LOCAL struct opscope__hot opscope__hot OPSCOPE__TLS_MODEL;
uint64_t opscope__version = 1;
static OPSCOPE__THREAD_LOCAL bool is_driver; /* this thread drives windows */

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static struct opscope__thread *threads; /* registry lock */
static uint64_t thread_count;           /* registry lock: threads that ever registered */
static uint64_t seed;                   /* registry lock; 0: the operating system's */
static uint64_t ended_cpu_ns;           /* registry lock: CPU time of threads that ended */
static uint64_t ended_driver_ns;        /* registry lock: the same, of window drivers */
static uint64_t ended_counted;          /* registry lock: `counted` of threads that ended */
static uint64_t ended_passed;           /* registry lock: `passed` likewise */
static bool had_window;                 /* registry lock: threads that register now are new */
static bool is_in_window;               /* registry lock: they have met a window */
static bool has_new;                    /* registry lock: a new thread has met the last window */

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

void opscope__version_bump(void)
{
    /* Partner: the relaxed load in opscope_range_open. Threads read the changed callbacks under the
     * lock. */
    opscope__store_release(&opscope__version, opscope__version + 1);
}

/* ---- CPU time -------------------------------------------------------------------------------- */

/* Called by the thread itself. */
static void start_cpu_clock(struct opscope__thread *thread)
{
    pthread_getcpuclockid(pthread_self(), &thread->cpu_clock);
    thread->cpu_start_ns = opscope__clock_ns(thread->cpu_clock);
}

/* With the lock held: CPU time since start_cpu_clock. */
static uint64_t cpu_ns(const struct opscope__thread *thread)
{
    const uint64_t now = opscope__clock_ns(thread->cpu_clock);
    return now > thread->cpu_start_ns ? now - thread->cpu_start_ns : 0;
}

/* With the lock held. */
static uint64_t drivers_cpu_ns(void)
{
    return ended_driver_ns + (is_driver ? opscope__clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0);
}

void opscope__registry_read_cpu(struct opscope__cpu_times *out)
{
    opscope__registry_lock();
    *out = (struct opscope__cpu_times){.known_ns = ended_cpu_ns, .has_new = has_new};
    for (const struct opscope__thread *thread = threads; thread != NULL; thread = thread->next) {
        /* Also for a new thread: reading a thread's clock brings the process clock up to date with
         * that thread. */
        const uint64_t own = cpu_ns(thread);
        out->known_ns += thread->is_new == 0 ? own : 0;
    }
    const uint64_t drivers_ns = drivers_cpu_ns();
    const uint64_t all_ns = opscope__clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t not_rest_ns = out->known_ns + drivers_ns;
    out->rest_ns = all_ns > not_rest_ns ? all_ns - not_rest_ns : 0;
    opscope__registry_unlock();
}

/* The thread counts down without synchronisation; an aligned load returns the old or the new value.
 */
static uint64_t OPSCOPE__UNSYNCHRONIZED passed_now(const struct opscope__thread *thread)
{
    const volatile uint64_t *skip = &thread->hot->skip[OPSCOPE_FUNCTION];
    return thread->passed + (thread->armed != 0 ? thread->armed - *skip : 0);
}

/* Whether a callback wants the thread's operators. If it set its countdowns before the last change
 * of callbacks, it has opened no range since. Loads as above. */
static bool OPSCOPE__UNSYNCHRONIZED is_wanted_now(const struct opscope__thread *thread)
{
    const volatile uint64_t *version = &thread->hot->version;
    return thread->armed == 0 && *version == opscope__version;
}

uint64_t opscope__registry_counted(bool *out_is_exact, unsigned *out_busy)
{
    opscope__registry_lock();
    uint64_t count = ended_counted + ended_passed;
    *out_busy = 0;
    for (struct opscope__thread *thread = threads; thread != NULL; thread = thread->next) {
        const uint64_t of_thread = opscope__load_relaxed(&thread->counted) + passed_now(thread);
        *out_busy += of_thread != thread->counted_before;
        thread->counted_before = of_thread;
        count += of_thread;
        *out_is_exact &= !is_wanted_now(thread);
    }
    opscope__registry_unlock();
    return count;
}

uint64_t opscope__registry_counted_by_bridges(void)
{
    opscope__registry_lock();
    uint64_t count = ended_counted;
    for (const struct opscope__thread *thread = threads; thread != NULL; thread = thread->next) {
        count += opscope__load_relaxed(&thread->counted);
    }
    opscope__registry_unlock();
    return count;
}

void opscope__thread_keep_passed(struct opscope__thread *thread)
{
    thread->passed = passed_now(thread);
    thread->armed = 0;
}

void opscope__registry_driver_begins(void)
{
    is_driver = true;
}

void opscope__registry_driver_ends(void)
{
    opscope__registry_lock();
    ended_driver_ns = drivers_cpu_ns();
    opscope__registry_unlock();
}

uint64_t opscope__registry_drivers_ns(void)
{
    opscope__registry_lock();
    const uint64_t ns = drivers_cpu_ns();
    opscope__registry_unlock();
    return ns;
}

/* A new thread becomes known only here, as it meets its second window. Most threads that come after
 * the first window end before their second. All of their work belongs to the totals of new threads,
 * which are weighted separately: what they do between windows as what they do in them, whether
 * their first range is in a window or not. */
void opscope__registry_window_opens(void)
{
    opscope__registry_lock();
    had_window = is_in_window = true;
    has_new = false;
    for (struct opscope__thread *thread = threads; thread != NULL; thread = thread->next) {
        if (thread->is_new == OPSCOPE__HAS_MET_WINDOW) {
            thread->cpu_start_ns = opscope__clock_ns(thread->cpu_clock);
            /* Partner of both: the load in recorder/recorder.c, by the thread. */
            opscope__store_relaxed(&thread->is_new, 0);
        } else if (thread->is_new != 0) {
            opscope__store_relaxed(&thread->is_new, OPSCOPE__HAS_MET_WINDOW);
            has_new = true;
        }
    }
    opscope__registry_unlock();
}

void opscope__registry_window_closes(void)
{
    opscope__registry_lock();
    is_in_window = false;
    opscope__registry_unlock();
}

/* ---- beginning and end ------------------------------------------------------------------------- */

/* The destructor of `key`: runs when the thread ends. */
static void thread_ended(void *value)
{
    struct opscope__thread *thread = value;
    opscope__observers_thread_ends(thread);
    opscope__hot = (struct opscope__hot){0};
    opscope__registry_lock();
    struct opscope__thread **link = &threads;
    while (*link != thread) {
        link = &(*link)->next;
    }
    *link = thread->next;
    ended_cpu_ns += thread->is_new == 0 ? cpu_ns(thread) : 0;
    ended_counted += thread->counted;
    ended_passed += thread->passed;
    opscope__registry_unlock();
    opscope__observers_thread_freed(thread);
    free(thread);
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
    thread->hot = &opscope__hot;
    start_cpu_clock(thread);
    opscope__registry_lock();
    thread->id = ++thread_count;
    opscope__store_relaxed(&thread->is_new, is_in_window ? OPSCOPE__HAS_MET_WINDOW
                                            : had_window ? OPSCOPE__HAS_MET_NONE
                                                         : 0);
    has_new |= is_in_window;
    opscope__random_seed(&thread->random, seed, thread->id);
    thread->next = threads;
    threads = thread;
    opscope__registry_unlock();
    opscope__hot.thread = thread;
    opscope__observers_thread_begins(thread);
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

static void fork_child(void)
{
    struct opscope__thread *self = opscope__hot.thread;
    opscope__random_fork_child();
    /* The other threads' states are leaked: each thread may have been changing its own state, and
     * the child may still close one of its async ranges. */
    threads = NULL;
    ended_cpu_ns = 0;
    ended_driver_ns = 0;
    had_window = is_in_window = has_new = false;
    if (self != NULL) {
        self->next = NULL;
        opscope__store_relaxed(&self->is_new, 0);
        threads = self;
        start_cpu_clock(self); /* the child runs on another thread, whose clock starts anew */
        opscope__thread_reseed(self);
        opscope__hot_invalidate();
    }
}

static const struct opscope__observer observer = {.fork_prepare = opscope__registry_lock,
                                                  .fork_child = fork_child,
                                                  .fork_unlock = opscope__registry_unlock};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_REGISTRY, &observer);
}
