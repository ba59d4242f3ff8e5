/* record/window.c -- drives the recorder's windows from a thread of its own.
 *
 * The thread sleeps; at random moments it opens a window, sleeps for its length and closes it. Gaps
 * are exponential, so a window is as likely at one moment as at any other, whatever rhythm the
 * program has. A window's weight is wall time over time on: measured, over all windows so far, with
 * the plan standing in for the first few; so late timers make weights right, not estimates wrong.
 *
 * Between windows, and where it opens none because nothing is to be recorded, it looks at the control
 * block (record/control.h): at each waking, and at least every OPSCOPE__LOOK_NS.
 *
 * It is a C thread: no interpreter, no GIL, all signals blocked. At a fork it is not in the child,
 * which starts one of its own with its first segment. Lock: `lock` guards the plan; it is not held
 * while a window opens or closes.
 */
#define _GNU_SOURCE
#include "record/window.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>

#include "base/clock.h"
#include "opscope/status.h"
#include "record/control.h"
#include "record/random.h"
#include "record/recorder_state.h"

enum { PRIOR_WINDOWS = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool has_thread;
static bool is_open;         /* the thread is about a window; the plan changes after it */
static uint64_t plan_serial; /* goes up with each change of the plan */
static bool is_wanted;       /* to open windows, or to listen */
static uint64_t window_ns;   /* 0: no windows, and only listens */
static uint64_t period_ns;

void opscope__window_lock(void)
{
    pthread_mutex_lock(&lock);
}

void opscope__window_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void opscope__window_fork_child(void)
{
    has_thread = false;
    is_open = false;
    is_wanted = false;
}

/* With the lock held: sleeps for `ns`, or until the plan is another than `serial`. */
static bool sleep_within(uint64_t serial, uint64_t ns)
{
    uint64_t end = opscope__monotonic_ns() + ns;
    const struct timespec until = {.tv_sec = (time_t)(end / 1000000000u),
                                   .tv_nsec = (long)(end % 1000000000u)};
    while (plan_serial == serial && opscope__monotonic_ns() < end) {
        pthread_cond_timedwait(&changed, &lock, &until);
    }
    return plan_serial == serial;
}

/* With the lock held: the same, in steps after each of which the control block is looked at. It may
 * say that the plan is to be another. */
static bool sleep_and_look(uint64_t serial, uint64_t ns)
{
    const uint64_t end = opscope__monotonic_ns() + ns;
    for (;;) {
        const uint64_t now = opscope__monotonic_ns();
        const uint64_t left = now < end ? end - now : 0;
        if (!sleep_within(serial, left < OPSCOPE__LOOK_NS ? left : OPSCOPE__LOOK_NS)) {
            return false;
        }
        pthread_mutex_unlock(&lock);
        opscope__control_look();
        pthread_mutex_lock(&lock);
        if (left <= OPSCOPE__LOOK_NS) {
            return plan_serial == serial;
        }
    }
}

/* With the lock held, in a window: nothing can be changed from here, so a window ends early where
 * there is something new. */
static bool sleep_in_window(uint64_t serial, uint64_t ns)
{
    const uint64_t end = opscope__monotonic_ns() + ns;
    for (;;) {
        const uint64_t now = opscope__monotonic_ns();
        const uint64_t left = now < end ? end - now : 0;
        if (!sleep_within(serial, left < OPSCOPE__LOOK_NS ? left : OPSCOPE__LOOK_NS)) {
            return false;
        }
        if (left <= OPSCOPE__LOOK_NS) {
            return true;
        }
        pthread_mutex_unlock(&lock);
        bool is_news = opscope__control_is_news();
        pthread_mutex_lock(&lock);
        if (is_news) {
            return plan_serial == serial;
        }
    }
}

/* With the lock held: windows as planned, until the plan changes. */
static void follow_plan(opscope__random *random)
{
    const uint64_t serial = plan_serial;
    const double planned_on = (double)window_ns, planned_period = (double)period_ns;
    double on = 0.0, cycles = 0.0;
    uint64_t cycle_start = opscope__monotonic_ns();
    for (;;) {
        double gap = -log(opscope__random_unit(random)) * (planned_period - planned_on);
        if (!sleep_and_look(serial, (uint64_t)gap)) {
            return;
        }
        double weight = (PRIOR_WINDOWS * planned_period + cycles) /
                        (PRIOR_WINDOWS * planned_on + on);
        is_open = true;
        pthread_mutex_unlock(&lock);
        uint64_t open = opscope__monotonic_ns();
        opscope__recorder_window_open((uint64_t)llround(weight * (double)OPSCOPE__WEIGHT_ONE));
        pthread_mutex_lock(&lock);
        bool goes_on = sleep_in_window(serial, (uint64_t)planned_on);
        pthread_mutex_unlock(&lock);
        uint64_t close = opscope__monotonic_ns();
        opscope__recorder_window_close(close - open, close - cycle_start);
        pthread_mutex_lock(&lock);
        is_open = false;
        pthread_cond_broadcast(&changed);
        on += (double)(close - open);
        cycles += (double)(close - cycle_start);
        cycle_start = close;
        if (!goes_on) {
            return;
        }
    }
}

static void *drive(void *unused)
{
    (void)unused;
    opscope__random random;
    opscope__random_seed(&random, 0, 0);
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!is_wanted) {
            pthread_cond_wait(&changed, &lock);
        } else if (window_ns == 0) {
            (void)sleep_and_look(plan_serial, OPSCOPE__LOOK_NS);
        } else {
            follow_plan(&random);
        }
    }
    return NULL;
}

static int start_thread(void)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &clock);
    pthread_condattr_destroy(&clock);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, drive, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    pthread_setname_np(thread, "opscope-window");
    pthread_detach(thread);
    has_thread = true;
    return OPSCOPE_OK;
}

int opscope__window_start(uint64_t new_window_ns, uint64_t new_period_ns)
{
    pthread_mutex_lock(&lock);
    is_wanted = true;
    window_ns = new_window_ns;
    period_ns = new_period_ns;
    plan_serial++;
    int status = has_thread ? OPSCOPE_OK : start_thread();
    if (status == OPSCOPE_OK) {
        pthread_cond_signal(&changed);
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
        pthread_cond_wait(&changed, &lock);
    }
    pthread_mutex_unlock(&lock);
}
