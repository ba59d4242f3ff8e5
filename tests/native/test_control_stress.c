/* tests/native/test_control_stress.c -- threads that work, and forks, while a controller changes
 * how they are recorded. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "control_block.h"

static const uint64_t ONE_PPT = 1000000000000;

enum { THREADS = 8, CHANGES = 28 };
static uint32_t is_over;
static uint64_t run_count; /* add_relaxed */

static void *run_until_over(void *unused)
{
    (void)unused;
    uint64_t count = 0;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        run_ranges(op_named("busy"), 50);
        count += 50;
    }
    __atomic_fetch_add(&run_count, count, __ATOMIC_RELAXED);
    return NULL;
}

static void threads_at_work_take_every_change(void)
{
    const opscope_control half = {.given = OPSCOPE_CONTROL_SAMPLING,
                                  .sampling_prob_ppt = ONE_PPT / 2};
    const opscope_control labels = {.given = OPSCOPE_CONTROL_LABELS, .label_keys = "tenant"};
    const opscope_control short_windows = {
        .given = OPSCOPE_CONTROL_WINDOWS, .window_ns = 100000, .period_ns = 200000};
    const opscope_control *ways[] = {&all, &half, &short_windows, &off, &windows, &labels, &seldom};
    pthread_t threads[THREADS];
    start_with(1.0, 0, 0);
    int fd = open_own();
    is_over = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_until_over, NULL), 0);
    }
    for (int i = 0; i < CHANGES; i++) {
        uint64_t serial = ask(fd, ways[i * 5 % 7]);
        while (answer_of(fd).settings_serial != serial) {
            sched_yield();
        }
        CHECK_EQUAL(answer_of(fd).settings_status, 0);
        if (i % 10 == 0) { /* forks during it */
            pid_t pid = fork();
            CHECK(pid >= 0);
            if (pid == 0) {
                run_ranges(op_named("child"), 10);
                _exit(0);
            }
            int status;
            CHECK_EQUAL(waitpid(pid, &status, 0), pid);
            CHECK_EQUAL(status, 0);
        }
    }
    __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    close(fd);
    struct segment *segment = stop_and_read();
    struct totals totals = segment_sum_of(segment, "busy");
    CHECK(totals.samples > 0 && totals.samples <= run_count);
    CHECK(totals.weight >= totals.samples * ONE);
    CHECK_EQUAL(totals.histogram_weight, totals.weight);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(threads_at_work_take_every_change);
    remove_directory();
    return 0;
}
