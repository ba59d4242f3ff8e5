/* tests/native/test_fork_windows.c -- the window thread and forks: it starts with the first range,
 * is gone when a fork returns, and continues its work afterwards. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/atomics.h"
#include "opscope/recorder.h"
#include "ranges.h"
#include "read_segment.h"
#include "recorder/window.h"

static const uint64_t NEVER_NS = 1000000000000000; /* the next window is days away */
enum { MS = 1000000, FEW = 200 };

static void read_line(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, capacity - 1) : 0;
    text[bytes > 0 ? bytes : 0] = '\0';
    close(fd);
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1 /* as in GCC */
#endif
#endif

#ifdef __SANITIZE_THREAD__
enum { MANY = 100 }; /* a fork takes 20 ms with it */

/* That sanitizer has a thread of its own. */
static int thread_count(void)
{
    char path[300], name[64];
    int count = 1;
    DIR *listing = opendir("/proc/self/task");
    CHECK(listing != NULL);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%.255s/comm", entry->d_name);
        read_line(path, name, sizeof name);
        count += strcmp(name, "opscope-window\n") == 0;
    }
    closedir(listing);
    return count;
}
#else
enum { MANY = 1000 };

/* As CPython reads it. */
static int thread_count(void)
{
    char text[512];
    read_line("/proc/self/stat", text, sizeof text);
    const char *field = strrchr(text, ')');
    for (int i = 0; i < 18; i++) {
        CHECK(field != NULL);
        field = strchr(field + 1, ' ');
    }
    CHECK(field != NULL);
    return atoi(field);
}
#endif

static void start_windows(uint64_t window_ns, uint64_t period_ns)
{
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .window_ns = window_ns, .period_ns = period_ns};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

static uint64_t window_count(void)
{
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    return status.window_count;
}

static void wait_for_windows(uint64_t count)
{
    while (window_count() < count) {
        run_ranges(op_named("a"), 10);
    }
}

static int deferred_count;

static bool defer_it(void)
{
    deferred_count++;
    return true;
}

static bool refuse_it(void)
{
    deferred_count++;
    return false;
}

static void fork_once(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        _exit(thread_count() == 1 ? 0 : 1);
    }
    CHECK(check_child(child));
}

static void there_is_no_thread_before_the_first_range(void)
{
    const int before = thread_count();
    start_windows(10 * MS, NEVER_NS);
    CHECK_EQUAL(thread_count(), before);
    CHECK_EQUAL(opscope_recorder_set_sampling(0.0, 0, 0), OPSCOPE_OK); /* off: only polls */
    CHECK_EQUAL(thread_count(), before);
    CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 10 * MS, NEVER_NS), OPSCOPE_OK);
    CHECK_EQUAL(thread_count(), before);
    run_ranges(op_named("first"), 1);
    CHECK_EQUAL(thread_count(), before + 1);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void it_is_gone_as_a_fork_returns_and_starts_again_when_told_to(void)
{
    start_windows(MS, 2 * MS);
    wait_for_windows(1);
    const int before = thread_count();
    opscope__window_defer(defer_it);
    deferred_count = 0;
    fork_once();
    CHECK_EQUAL(deferred_count, 1);
    CHECK_EQUAL(thread_count(), before - 1);
    fork_once(); /* without a thread */
    CHECK_EQUAL(deferred_count, 2);
    opscope__window_resume();
    opscope__window_resume();
    CHECK_EQUAL(thread_count(), before);
    wait_for_windows(window_count() + 3);
    opscope__window_defer(refuse_it);
    fork_once();
    CHECK_EQUAL(thread_count(), before);
    opscope__window_defer(NULL);
    fork_once();
    CHECK_EQUAL(thread_count(), before);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    fork_once();
    opscope__window_resume(); /* nothing is needed */
}

static void it_is_gone_during_a_pause(void)
{
    const int before = thread_count();
    start_windows(MS, 4 * MS);
    wait_for_windows(2);
    for (int i = 0; i < MANY; i++) {
        opscope__window_pause();
        run_ranges(op_named("a"), 10); /* they start none meanwhile */
        CHECK_EQUAL(thread_count(), before);
        opscope__window_continue();
        CHECK_EQUAL(thread_count(), before + 1);
    }
    wait_for_windows(window_count() + 2);
    opscope__window_pause();
    CHECK_EQUAL(opscope_recorder_set_sampling(0.5, 0, 0), OPSCOPE_OK);
    opscope__window_continue();
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    CHECK_EQUAL(thread_count(), before);
    opscope__window_pause();
    opscope__window_continue(); /* nothing is needed */
    CHECK_EQUAL(thread_count(), before);
}

static void many_forks_lose_no_window_and_no_range(void)
{
    start_windows(5 * MS, 10 * MS);
    for (int i = 0; i < MANY; i++) {
        run_ranges(op_named("a"), 20);
        fork_once();
    }
    /* Windows are longer than the time between two forks, and end all the same. */
    CHECK(window_count() > 3);
    struct segment *segment = stop_and_read();
    CHECK(segment_sum_of(segment, "a").weight > 0);
    CHECK(segment->header->window_on_ns <= segment->header->window_wall_ns);
    segment_free(segment);
}

/* The weights of windows over forks represent all ranges, as others do. */
static void what_forks_cut_through_is_counted_whole(void)
{
    enum { FORKS = 400, EACH = 500 };
    start_windows(3 * MS, 12 * MS);
    const opscope_op *op = op_named("whole");
    for (int i = 0; i < FORKS; i++) {
        for (int j = 0; j < EACH; j++) {
            opscope_range range;
            opscope_range_open(&range, op, NULL);
            for (volatile int k = 0; k < 2000; k++) {
            }
            opscope_range_close(&range);
        }
        fork_once();
    }
    struct segment *segment = stop_and_read();
    const double all = (double)FORKS * EACH;
    const double found = (double)segment_sum_of(segment, "whole").weight / 65536.0;
    /* Some two hundred windows: 7 %, if their contents were coin tosses. */
    CHECK(found > 0.6 * all && found < 1.4 * all);
    segment_free(segment);
}

static bool is_over;

static void *change_plans(void *unused)
{
    for (int i = 0; !opscope__load_relaxed(&is_over); i++) {
        switch (i % 3) {
        case 0:
            CHECK_EQUAL(opscope_recorder_set_sampling(0.0, 0, 0), OPSCOPE_OK);
            break;
        case 1:
            CHECK_EQUAL(opscope_recorder_set_sampling(1.0, MS / 10, MS / 5), OPSCOPE_OK);
            break;
        default:
            CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 2 * MS, 3 * MS), OPSCOPE_OK);
            sched_yield();
        }
    }
    return unused;
}

static void forks_and_changes_of_the_plan_wait_for_each_other_in_no_circle(void)
{
    start_windows(MS / 10, MS / 5);
    run_ranges(op_named("a"), 1);
    pthread_t other;
    opscope__store_relaxed(&is_over, false);
    CHECK_EQUAL(pthread_create(&other, NULL, change_plans, NULL), 0);
    for (int i = 0; i < FEW; i++) {
        opscope__window_defer(i % 2 == 0 ? defer_it : NULL);
        run_ranges(op_named("a"), 20);
        fork_once();
        if (i % 4 == 0) {
            opscope__window_resume();
        }
    }
    opscope__window_defer(NULL);
    opscope__store_relaxed(&is_over, true);
    pthread_join(other, NULL);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void a_stop_with_the_thread_gone_closes_the_window(void)
{
    opscope__window_defer(defer_it);
    for (int i = 0; i < 50; i++) {
        start_windows(100 * MS, 101 * MS); /* one is nearly always open */
        opscope_recorder_status status;
        do {
            run_ranges(op_named("a"), 10);
            opscope_recorder_read_status(&status);
        } while (!status.in_window);
        fork_once();
        CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
        CHECK(!opscope_has_callbacks());
    }
    opscope__window_defer(NULL);
}

static void *fork_here(void *unused)
{
    for (int i = 0; i < 20; i++) {
        fork_once();
    }
    return unused;
}

static void a_fork_on_another_thread_leaves_it_alone(void)
{
    start_windows(MS, 2 * MS);
    run_ranges(op_named("a"), 1);
    opscope__window_defer(defer_it);
    deferred_count = 0;
    const int before = thread_count();
    pthread_t other;
    CHECK_EQUAL(pthread_create(&other, NULL, fork_here, NULL), 0);
    pthread_join(other, NULL);
    CHECK_EQUAL(deferred_count, 0);
    CHECK(thread_count() >= before);
    wait_for_windows(window_count() + 1);
    opscope__window_defer(NULL);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static int fork_in_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn, (void)user, (void)context;
    fork_once();
    return 0;
}

static void a_callback_may_fork(void)
{
    start_windows(2 * MS, 3 * MS);
    const opscope_callback callback = {.start = fork_in_start, .sampling_prob = 1.0};
    opscope_handle handle;
    CHECK_EQUAL(opscope_add_global_callback(&callback, &handle), OPSCOPE_OK);
    run_ranges(op_named("forks"), FEW);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    wait_for_windows(window_count() + 1);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

int main(void)
{
    make_directory();
    RUN(there_is_no_thread_before_the_first_range);
    RUN(it_is_gone_as_a_fork_returns_and_starts_again_when_told_to);
    RUN(it_is_gone_during_a_pause);
    RUN(many_forks_lose_no_window_and_no_range);
    RUN(what_forks_cut_through_is_counted_whole);
    RUN(forks_and_changes_of_the_plan_wait_for_each_other_in_no_circle);
    RUN(a_stop_with_the_thread_gone_closes_the_window);
    RUN(a_fork_on_another_thread_leaves_it_alone);
    RUN(a_callback_may_fork);
    remove_directory();
    return 0;
}
