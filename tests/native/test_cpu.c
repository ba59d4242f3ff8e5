/* tests/native/test_cpu.c -- the CPU time of the threads that open ranges, exact also for threads
 * that run now, have ended, or belong to another process; and that of all other threads. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "check.h"
#include "record/thread.h"

/* The process clock lags by up to a timer tick, 10 ms at most, for a thread that has just ended or
 * still runs. */
enum { BURN_NS = 40000000, TICK_NS = 10000000 };

static uint64_t own_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t ns)
{
    for (const uint64_t end = own_ns() + ns; own_ns() < end;) {
    }
}

static struct opscope__cpu_times times_now(void)
{
    struct opscope__cpu_times now;
    opscope__registry_read_cpu(&now);
    return now;
}

static uint64_t known_ns(void)
{
    return times_now().known_ns;
}

static void a_thread_counts_from_when_it_came_on(void)
{
    burn(BURN_NS);
    const uint64_t before = own_ns();
    (void)opscope_thread_id();
    const uint64_t first = known_ns();
    CHECK(first <= own_ns() - before);
    burn(BURN_NS);
    const uint64_t second = known_ns();
    CHECK(second - first >= BURN_NS);
    CHECK(second <= own_ns() - before);
}

/* Set by the other thread. */
static uint64_t other_ns;
static bool is_over;

static void *work(void *unused)
{
    (void)opscope_thread_id();
    const uint64_t start = own_ns();
    while (!opscope__load_relaxed(&is_over)) {
        opscope__store_release(&other_ns, own_ns() - start); /* partner: the acquire load below */
    }
    return unused;
}

static void a_thread_that_runs_now_is_counted_to_the_point_and_one_that_is_over_for_ever(void)
{
    pthread_t other;
    opscope__store_relaxed(&is_over, false);
    const uint64_t before = known_ns();
    CHECK_EQUAL(pthread_create(&other, NULL, work, NULL), 0);
    uint64_t told;
    do {
        told = opscope__load_acquire(&other_ns);
        CHECK(known_ns() - before >= told);
    } while (told < BURN_NS);
    opscope__store_relaxed(&is_over, true);
    pthread_join(other, NULL);
    CHECK(known_ns() - before >= opscope__load_acquire(&other_ns));
}

static void a_forked_child_begins_anew(void)
{
    (void)opscope_thread_id();
    burn(BURN_NS);
    pid_t child = fork();
    if (child == 0) {
        _exit(known_ns() <= own_ns() ? 0 : 1);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

static void *burn_a_while(void *unused)
{
    burn(BURN_NS);
    return unused;
}

static void *burn_in_registry(void *unused)
{
    (void)opscope_thread_id();
    burn(BURN_NS);
    return unused;
}

static void run_thread(void *(*body)(void *))
{
    pthread_t other;
    CHECK_EQUAL(pthread_create(&other, NULL, body, NULL), 0);
    pthread_join(other, NULL);
}

static void threads_that_open_no_range_are_the_rest(void)
{
    const struct opscope__cpu_times before = times_now();
    run_thread(burn_a_while);
    const struct opscope__cpu_times after = times_now();
    CHECK(after.rest_ns - before.rest_ns >= BURN_NS - TICK_NS);
    CHECK(after.known_ns - before.known_ns < BURN_NS);
}

static void a_thread_that_comes_in_a_window_and_ends_is_of_the_rest(void)
{
    opscope__registry_window_opens();
    const struct opscope__cpu_times before = times_now();
    CHECK(!before.has_new);
    run_thread(burn_in_registry);
    const struct opscope__cpu_times after = times_now();
    CHECK(after.rest_ns - before.rest_ns >= BURN_NS - TICK_NS);
    CHECK(after.known_ns - before.known_ns < BURN_NS);
    CHECK(after.has_new);
    opscope__registry_window_closes();
}

/* As in the window: otherwise its work would count as known between windows, and as rest in them.
 */
static void a_thread_that_comes_between_windows_and_ends_is_of_the_rest(void)
{
    opscope__registry_window_opens();
    opscope__registry_window_closes();
    const struct opscope__cpu_times before = times_now();
    run_thread(burn_in_registry);
    const struct opscope__cpu_times after = times_now();
    CHECK(after.rest_ns - before.rest_ns >= BURN_NS - TICK_NS);
    CHECK(after.known_ns - before.known_ns < BURN_NS);
    CHECK(!after.has_new);
}

/* A thread that lives through the close of a window and the opening of the next: `step` is the
 * progress of both threads. */
static uint32_t step;

static void await(uint32_t wanted)
{
    while (opscope__load_acquire(&step) != wanted) {
    }
}

static void *stay(void *unused)
{
    (void)opscope_thread_id();
    burn(BURN_NS);
    opscope__store_release(&step, 1); /* partner: await */
    await(2);
    burn(BURN_NS);
    return unused;
}

static void a_thread_of_a_window_is_known_from_the_next_one_on(void)
{
    pthread_t other;
    opscope__store_relaxed(&step, 0);
    opscope__registry_window_opens();
    const struct opscope__cpu_times before = times_now();
    CHECK_EQUAL(pthread_create(&other, NULL, stay, NULL), 0);
    await(1);
    const struct opscope__cpu_times within = times_now();
    CHECK(within.has_new);
    opscope__registry_window_closes();
    CHECK(times_now().has_new);
    opscope__registry_window_opens();
    const struct opscope__cpu_times next = times_now();
    CHECK(!next.has_new);
    CHECK(next.rest_ns - before.rest_ns >= BURN_NS); /* and stays there */
    opscope__store_release(&step, 2);
    pthread_join(other, NULL);
    CHECK(times_now().known_ns - next.known_ns >= BURN_NS);
    opscope__registry_window_closes();
}

static void a_thread_that_comes_between_windows_is_known_from_the_second_one_on(void)
{
    pthread_t other;
    opscope__store_relaxed(&step, 0);
    const struct opscope__cpu_times before = times_now();
    CHECK_EQUAL(pthread_create(&other, NULL, stay, NULL), 0);
    await(1);
    opscope__registry_window_opens();
    const struct opscope__cpu_times first = times_now();
    CHECK(first.has_new);
    CHECK(first.rest_ns - before.rest_ns >= BURN_NS);
    opscope__registry_window_closes();
    opscope__registry_window_opens();
    const struct opscope__cpu_times second = times_now();
    CHECK(!second.has_new);
    opscope__store_release(&step, 2);
    pthread_join(other, NULL);
    CHECK(times_now().known_ns - second.known_ns >= BURN_NS);
    opscope__registry_window_closes();
}

int main(void)
{
    RUN(a_thread_counts_from_when_it_came_on);
    RUN(a_thread_that_runs_now_is_counted_to_the_point_and_one_that_is_over_for_ever);
    RUN(a_forked_child_begins_anew);
    RUN(threads_that_open_no_range_are_the_rest);
    RUN(a_thread_that_comes_in_a_window_and_ends_is_of_the_rest);
    RUN(a_thread_that_comes_between_windows_and_ends_is_of_the_rest);
    RUN(a_thread_of_a_window_is_known_from_the_next_one_on);
    RUN(a_thread_that_comes_between_windows_is_known_from_the_second_one_on);
    return 0;
}
