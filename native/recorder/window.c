/* recorder/window.c -- drives the recorder's windows from a thread of its own.
 *
 * The thread sleeps until the next step of recorder/window_cycle.c is due, and takes it. Between
 * windows, and while it opens none because nothing is recorded, it polls the control block
 * (recorder/control.h): whenever it wakes, and at least every OPSCOPE__POLL_NS; half as often while
 * the program does almost nothing.
 *
 * It is a C thread: no interpreter, no GIL, all signals blocked. Lock: `lock` guards the plan and
 * the ownership of the cycle; it is not held during a step or a poll.
 *
 * Forks. A single-threaded process may need to stay one: CPython warns at a fork of a process with
 * several threads, by the kernel's count after fork() has returned in the parent. So a fork on the
 * main thread ends this thread first. It starts again after the fork: by the hook of
 * opscope__window_defer if one is set, else in the parent's handler. The cycle keeps its state
 * meanwhile: an open window stays open, and the next thread continues from there. The child has no
 * window thread; it starts one with its first segment. A fork on another thread leaves the window
 * thread alone: such a process has several threads anyway.
 *
 * Why that cannot deadlock. The forking thread waits for this one before it takes any lock of this
 * library, and it is in no call of the library that holds one, because callbacks run without locks.
 * So each lock that this thread waits for, in a step or a poll, is released by a running thread.
 * The forking thread may hold the GIL. This thread never takes the GIL: it drops only the callbacks
 * of the recorder and the tracer, which are C. Fork handlers of other libraries that have already
 * run hold locks of their own, which steps do not take. Steps need an allocator's lock, but its
 * handler is registered when the program starts and so runs after ours. Another thread may wait for
 * this one in opscope__window_stop with the settings lock held. It finds this thread gone, closes
 * the window itself and continues, and the fork then gets that lock.
 */
#define _GNU_SOURCE
#include "recorder/window.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/real_time.h"
#include "opscope/status.h"
#include "record/thread.h"
#include "recorder/state.h"
#include "recorder/window_cycle.h"
#include "segment/sandbox.h"

/* The kernel stops counting a joined thread within microseconds; wait_until_gone waits at most this
 * long. */
static const uint64_t GONE_LIMIT_NS = 20000000;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool has_condition; /* `changed` is initialised */
static bool has_thread;    /* a window thread exists and owns the cycle */
static pthread_t thread;
static bool has_begun; /* the thread runs, and has made the calls that only a new thread makes */
static clockid_t thread_cpu_clock; /* of the current window thread, or of the last one */
static bool is_ending;             /* the thread should end, and the cycle keep its state */
static bool is_forking;            /* no thread may start */
static bool is_open;         /* a window is open or about to open; the plan changes after it */
static uint64_t plan_serial; /* increases with each change of the plan */
static bool is_wanted;       /* to open windows, or to poll */
static uint64_t window_ns;   /* 0: no windows, only polls */
static uint64_t period_ns;
static uint64_t begun_serial; /* of the plan that the cycle follows; 0: none */
static bool (*defer)(void);

void opscope__window_lock(void)
{
    pthread_mutex_lock(&lock);
}

void opscope__window_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- the thread --------------------------------------------------------------------------------- */

/* With the lock held: sleeps until end_ns, or until the plan changes. */
static void sleep_until(uint64_t serial, uint64_t end_ns)
{
    while (plan_serial == serial && !is_ending && opscope__monotonic_ns() < end_ns) {
        opscope__cond_timedwait(&changed, &lock, end_ns);
    }
}

/* With the lock held, released meanwhile; call it as owner of the cycle: closes an open window. */
static void end_plan(void)
{
    begun_serial = 0;
    pthread_mutex_unlock(&lock);
    opscope__cycle_end();
    pthread_mutex_lock(&lock);
    is_open = false;
    pthread_cond_broadcast(&changed);
}

/* With the lock held, released meanwhile. */
static void begin_plan(void)
{
    const uint64_t window = window_ns, period = period_ns;
    begun_serial = plan_serial;
    pthread_mutex_unlock(&lock);
    opscope__cycle_begin(window, period);
    pthread_mutex_lock(&lock);
}

/* With the lock held, released meanwhile. */
static void take_step(void)
{
    is_open = true;
    pthread_mutex_unlock(&lock);
    opscope__cycle_step();
    const bool is_open_still = opscope__cycle_is_open();
    pthread_mutex_lock(&lock);
    is_open = is_open_still;
    if (!is_open) {
        pthread_cond_broadcast(&changed);
    }
}

/* With the lock held, released meanwhile: polls the control block, which may change the plan.
 * Inside a window no change is possible from here, so the window ends early if there is something
 * new. Returns when to poll again. */
static uint64_t poll_control(uint64_t now_ns, uint64_t due_ns)
{
    const bool is_in_window = is_open;
    uint64_t look_ns = window_ns != 0 ? opscope__cycle_look_ns() : UINT64_MAX;
    pthread_mutex_unlock(&lock);
    if (look_ns <= now_ns && now_ns < due_ns) {
        opscope__cycle_look();
        look_ns = opscope__cycle_look_ns();
    }
    if (!is_in_window) {
        opscope__recorder.hooks->apply();
    } else if (opscope__recorder.hooks->is_news()) {
        opscope__cycle_hurry();
    }
    pthread_mutex_lock(&lock);
    return now_ns < look_ns && look_ns != UINT64_MAX ? look_ns : now_ns + OPSCOPE__POLL_NS;
}

/* With the lock held: polls if it is due and before each window; then takes the step that is due,
 * or sleeps. */
static void go_on(uint64_t *next_poll_ns)
{
    const uint64_t serial = plan_serial;
    const uint64_t now_ns = opscope__monotonic_ns();
    const uint64_t due_ns = window_ns != 0 ? opscope__cycle_due_ns() : UINT64_MAX;
    const bool is_due = now_ns >= due_ns;
    if (!is_due && now_ns < *next_poll_ns) {
        sleep_until(serial, due_ns < *next_poll_ns ? due_ns : *next_poll_ns);
        return;
    }
    if (!is_due || !is_open) {
        *next_poll_ns = poll_control(now_ns, due_ns);
    }
    if (is_due && plan_serial == serial && !is_ending) {
        take_step();
    }
}

static void *drive(void *unused)
{
    uint64_t next_poll_ns = 0;
    prctl(PR_SET_NAME, "opscope-window"); /* from another thread, the C library would open a file to
                                             set the name */
    opscope__registry_driver_begins();
    pthread_mutex_lock(&lock);
    pthread_getcpuclockid(pthread_self(), &thread_cpu_clock);
    has_begun = true;
    pthread_cond_broadcast(&changed);
    for (;;) {
        if (begun_serial != 0 && begun_serial != plan_serial) {
            end_plan();
        } else if (is_ending) {
            break;
        } else if (!is_wanted) {
            pthread_cond_wait(&changed, &lock);
        } else if (window_ns != 0 && begun_serial == 0) {
            begin_plan();
        } else {
            go_on(&next_poll_ns);
        }
    }
    opscope__registry_driver_ends();
    has_thread = false;
    pthread_cond_broadcast(
        &changed); /* a thread that waits for a window to close does it itself now */
    pthread_mutex_unlock(&lock);
    return unused;
}

/* With the lock held, released meanwhile. Returns once the thread runs: a sandbox that is closed
 * right afterwards need not allow new threads. */
static int start_thread(void)
{
    if (opscope__sandbox_is_new()) {
        return OPSCOPE_ERR_PERMISSION; /* starting a thread may be forbidden by now */
    }
    if (!has_condition) {
        pthread_condattr_t clock;
        pthread_condattr_init(&clock);
        pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
        pthread_cond_init(&changed, &clock);
        pthread_condattr_destroy(&clock);
        has_condition = true;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_begun = false;
    int error = pthread_create(&thread, NULL, drive, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    has_thread = true;
    while (!has_begun) {
        pthread_cond_wait(&changed, &lock);
    }
    return OPSCOPE_OK;
}

/* ---- the plan ----------------------------------------------------------------------------------- */

int opscope__window_start(uint64_t new_window_ns, uint64_t new_period_ns)
{
    pthread_mutex_lock(&lock);
    is_wanted = true;
    window_ns = new_window_ns;
    period_ns = new_period_ns;
    plan_serial++;
    int status = has_thread || is_forking ? OPSCOPE_OK : start_thread();
    if (has_thread) {
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void opscope__window_stop(void)
{
    pthread_mutex_lock(&lock);
    is_wanted = false;
    plan_serial++;
    if (has_thread) {
        pthread_cond_broadcast(&changed);
    }
    while (is_open) {
        if (has_thread) {
            pthread_cond_wait(&changed, &lock);
        } else {
            end_plan(); /* the thread ended for a fork; no new one starts while none is needed */
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- forks -------------------------------------------------------------------------------------- */

static bool is_main_thread(void)
{
    return syscall(SYS_gettid) == getpid();
}

/* A join returns before the kernel stops counting the thread. */
static void wait_until_gone(clockid_t cpu_clock)
{
    const uint64_t end_ns = opscope__monotonic_ns() + GONE_LIMIT_NS;
    struct timespec now;
    /* The clock of a thread that the kernel no longer counts cannot be read. A sandbox allows this
     * call, because each window makes it. */
    while (opscope__clock_gettime(cpu_clock, &now) == 0 && opscope__monotonic_ns() < end_ns) {
    }
}

void opscope__window_fork_prepare(void)
{
    if (!is_main_thread()) {
        return;
    }
    pthread_mutex_lock(&lock);
    is_forking = true;
    is_ending = has_thread;
    const bool has_ending = is_ending;
    const pthread_t ending = thread;
    if (has_ending) {
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (has_ending) {
        pthread_join(ending, NULL);
        pthread_mutex_lock(&lock);
        is_ending = false;
        const clockid_t cpu_clock = thread_cpu_clock;
        pthread_mutex_unlock(&lock);
        wait_until_gone(cpu_clock);
    }
}

void opscope__window_fork_parent(void)
{
    if (!is_main_thread()) {
        return;
    }
    pthread_mutex_lock(&lock);
    is_forking = false;
    const bool is_missing = is_wanted && !has_thread;
    pthread_mutex_unlock(&lock);
    if (is_missing && (defer == NULL || !defer())) {
        opscope__window_resume();
    }
}

void opscope__window_fork_child(void)
{
    has_condition = has_thread = false;
    is_ending = is_forking = false;
    is_open = is_wanted = false;
    begun_serial = 0;
    opscope__cycle_fork_child();
}

void opscope__window_defer(bool (*new_defer)(void))
{
    defer = new_defer;
}

void opscope__window_resume(void)
{
    pthread_mutex_lock(&lock);
    if (is_wanted && !has_thread && !is_forking) {
        (void)start_thread(); /* if it fails, the next fork or plan tries again */
    }
    pthread_mutex_unlock(&lock);
}

/* ---- other calls that need a process with one thread ------------------------------------------- */

void opscope__window_pause(void)
{
    opscope__window_fork_prepare();
}

void opscope__window_continue(void)
{
    if (!is_main_thread()) {
        return;
    }
    pthread_mutex_lock(&lock);
    is_forking = false;
    pthread_mutex_unlock(&lock);
    opscope__window_resume();
}
