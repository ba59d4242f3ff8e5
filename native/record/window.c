/* record/window.c -- drives the recorder's windows from a thread of its own.
 *
 * The thread sleeps; at random moments it opens a window, sleeps for its length and closes it. Gaps
 * are exponential, so a window is as likely at one moment as at any other, whatever rhythm the
 * program has. What a window's ranges stand for is in record/exposure.c; here it is measured: time
 * and work in windows and in all, so that late timers make weights right, not estimates wrong.
 *
 * Between windows, and where it opens none because nothing is to be recorded, it looks at the
 * control block (record/control.h): at each waking, and at least every OPSCOPE__LOOK_NS.
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
#include "record/exposure.h"
#include "record/random.h"
#include "record/recorder_state.h"
#include "record/thread.h"

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

/* With the lock held: the same, in steps after each of which the control block is looked at, which
 * may say that the plan is to be another. In a window nothing can be changed from here: it ends
 * early where there is something new. */
static bool sleep_and_look(uint64_t serial, uint64_t ns, bool is_in_window)
{
    const uint64_t end = opscope__monotonic_ns() + ns;
    for (;;) {
        const uint64_t now = opscope__monotonic_ns();
        const uint64_t left = now < end ? end - now : 0;
        const bool is_last = left <= OPSCOPE__LOOK_NS;
        if (!sleep_within(serial, is_last ? left : OPSCOPE__LOOK_NS)) {
            return false;
        }
        if (is_in_window && is_last) {
            return true;
        }
        bool is_news = false;
        pthread_mutex_unlock(&lock);
        if (is_in_window) {
            is_news = opscope__control_is_news();
        } else {
            opscope__control_look();
        }
        pthread_mutex_lock(&lock);
        if (is_last || is_news) {
            return plan_serial == serial;
        }
    }
}

struct moment {
    uint64_t wall_ns;
    uint64_t cpu_ns; /* of the threads that open ranges, so far */
};

static struct moment this_moment(void)
{
    return (struct moment){opscope__monotonic_ns(), opscope__registry_cpu_ns()};
}

/* The segment may be another than before, with less in it. */
static double since(uint64_t before, uint64_t now)
{
    return now > before ? (double)(now - before) : 0.0;
}

/* With the lock held: windows as planned, until the plan changes. Moments are taken before
 * callbacks come and go, at both ends of a window. */
static void follow_plan(opscope__random *random, opscope__exposure *exposure)
{
    const uint64_t serial = plan_serial;
    const double planned_on = (double)window_ns, planned_period = (double)period_ns;
    opscope__exposure_plan(exposure, planned_on, planned_period);
    pthread_mutex_unlock(&lock);
    struct moment last = this_moment();
    uint64_t last_cost_ns = opscope__recorder_cost_ns();
    pthread_mutex_lock(&lock);
    for (;;) {
        double gap = -log(opscope__random_unit(random)) * (planned_period - planned_on);
        bool goes_on = sleep_and_look(serial, (uint64_t)gap, false);
        is_open = goes_on;
        pthread_mutex_unlock(&lock);
        const struct moment open = this_moment();
        struct opscope__exposure_cycle cycle = {.outside = since(last.cpu_ns, open.cpu_ns)};
        if (goes_on) {
            cycle.weight = opscope__exposure_weight(exposure);
            opscope__recorder_window_open(
                (uint64_t)llround(cycle.weight * (double)OPSCOPE__WEIGHT_ONE));
            pthread_mutex_lock(&lock);
            goes_on = sleep_and_look(serial, (uint64_t)planned_on, true);
            pthread_mutex_unlock(&lock);
            const struct moment close = this_moment();
            opscope__recorder_window_close(close.wall_ns - open.wall_ns,
                                           close.wall_ns - last.wall_ns);
            const uint64_t cost_ns = opscope__recorder_cost_ns();
            cycle.on = since(open.wall_ns, close.wall_ns);
            cycle.wall = since(last.wall_ns, close.wall_ns);
            cycle.inside = since(open.cpu_ns, close.cpu_ns);
            cycle.recording = since(last_cost_ns, cost_ns);
            last = close;
            last_cost_ns = cost_ns;
        }
        opscope__exposure_count(exposure, &cycle);
        pthread_mutex_lock(&lock);
        is_open = false;
        pthread_cond_broadcast(&changed);
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
    opscope__exposure exposure = {0};
    pthread_mutex_lock(&lock);
    for (;;) {
        if (!is_wanted) {
            pthread_cond_wait(&changed, &lock);
        } else if (window_ns == 0) {
            (void)sleep_and_look(plan_serial, OPSCOPE__LOOK_NS, false);
        } else {
            follow_plan(&random, &exposure);
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
