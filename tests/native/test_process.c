/* tests/native/test_process.c -- the recorder over a fork of the process, and when the process is
 * killed. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include "opscope/debug_info.h"
#include "opscope/usage.h"
#include "ranges.h"
#include "read_segment.h"

enum { THREADS = 4 };

static bool is_own(const struct segment *segment)
{
    return segment->header->pid == (uint64_t)getpid();
}

/* The segment of a process other than this one. */
static struct segment *read_childs(void)
{
    char path[512];
    struct segment *found = NULL;
    DIR *listing = opendir(directory);
    CHECK(listing != NULL);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        if (strstr(entry->d_name, ".seg") == NULL) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%.255s", directory, entry->d_name);
        struct segment *segment = segment_read(path);
        if (is_own(segment)) {
            segment_free(segment);
        } else {
            CHECK(found == NULL);
            found = segment;
        }
    }
    closedir(listing);
    CHECK(found != NULL);
    return found;
}

static void a_child_counts_in_a_segment_of_its_own_and_the_parents_is_not_touched(void)
{
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_debug_info_push("model_id", "m", &guard), OPSCOPE_OK);
    start_recorder("model_id");
    CHECK_EQUAL(opscope_recorder_note("program", "test"), OPSCOPE_OK);
    opscope_log_api_usage_once("parent's");
    run_ranges(op_named("before"), 10);
    opscope_range open;
    opscope_range_open(&open, op_named("open"), NULL);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(opscope_recorder_note("early", "1"), OPSCOPE_OK);
        opscope_log_api_usage_once("child's");
        opscope_range_close(&open); /* counts only in the parent */
        run_ranges(op_named("child"), 100);
        opscope_recorder_status status;
        opscope_recorder_read_status(&status);
        CHECK(status.running && status.path[0] != '\0');
        CHECK_EQUAL(opscope_recorder_note("late", "1"), OPSCOPE_OK);
        _exit(0);
    }
    CHECK(check_child(child));
    run_ranges(op_named("after"), 1000);
    opscope_range_close(&open);
    struct segment *childs = read_childs(), *own = read_own();
    CHECK_EQUAL(segment_sum(own, 0, ANY, ANY).samples, 1011);
    CHECK_EQUAL(segment_sum_of(own, "child").samples, 0);
    CHECK_EQUAL(segment_entry_count(own, OPSCOPE_ENTRY_NOTE), 2); /* `labels` is the recorder's */
    CHECK_EQUAL(segment_entry_count(own, OPSCOPE_ENTRY_USAGE), 1);
    CHECK_EQUAL(childs->header->pid, child);
    CHECK(memcmp(childs->header->random_id, own->header->random_id, 16) != 0);
    CHECK(memcmp(childs->header->boot_id, own->header->boot_id, 16) == 0);
    CHECK_EQUAL(segment_sum(childs, 0, ANY, ANY).samples, 100);
    CHECK_EQUAL(segment_sum_of(childs, "child").samples, 100);
    CHECK_EQUAL(segment_sum(childs, 0, ANY, 0).samples, 0); /* all have labels */
    CHECK_EQUAL(segment_entry_count(childs, OPSCOPE_ENTRY_NOTE), 4);
    CHECK_EQUAL(segment_entry_count(childs, OPSCOPE_ENTRY_USAGE), 1);
    CHECK_TEXT(entry_text(segment_entry(childs, OPSCOPE_ENTRY_USAGE, 0)), "child's");
    CHECK_EQUAL(childs->header->dropped_count + own->header->dropped_count, 0);
    CHECK_EQUAL(childs->header->state, OPSCOPE_SEGMENT_LIVE);
    segment_free(childs);
    segment_free(own);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    opscope_debug_info_pop(&guard);
}

static void a_child_that_runs_nothing_makes_no_segment(void)
{
    char path[512];
    start_recorder("");
    run_ranges(op_named("a"), 1);
    pid_t child = fork();
    if (child == 0) {
        opscope_recorder_status status;
        opscope_recorder_read_status(&status);
        CHECK(status.running);
        CHECK_TEXT(status.path, "");
        _exit(0);
    }
    CHECK(check_child(child));
    CHECK_EQUAL(list_directory(path, sizeof path), 1);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static void a_child_may_stop_and_start_for_itself(void)
{
    start_recorder("");
    run_ranges(op_named("a"), 1);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
        opscope_recorder_options options = {.directory = directory, .sampling_prob = 1.0};
        CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
        run_ranges(op_named("a"), 5);
        struct segment *segment = stop_and_read();
        CHECK_EQUAL(segment_sum_of(segment, "a").samples, 5);
        _exit(0);
    }
    CHECK(check_child(child));
    struct segment *own = stop_and_read();
    CHECK_EQUAL(segment_sum_of(own, "a").samples, 1);
    segment_free(own);
}

static void windows_go_on_in_a_child(void)
{
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .window_ns = 1000000, .period_ns = 2000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_named("a"), 100);
    pid_t child = fork();
    if (child == 0) {
        opscope_recorder_status status;
        do {
            run_ranges(op_named("a"), 100);
            opscope_recorder_read_status(&status);
        } while (status.window_count < 5);
        _exit(0);
    }
    CHECK(check_child(child));
    struct segment *childs = read_childs();
    CHECK(childs->header->window_count >= 5);
    CHECK(segment_sum_of(childs, "a").samples > 0);
    segment_free(childs);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

static bool must_stop;

static void *run_until_stopped(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&must_stop, __ATOMIC_ACQUIRE)) {
        opscope_debug_info_guard guard;
        CHECK_EQUAL(opscope_debug_info_push("model_id", "busy", &guard), OPSCOPE_OK);
        run_ranges(op_named("busy"), 20);
        opscope_debug_info_pop(&guard);
    }
    return NULL;
}

static void forks_while_other_threads_run_operators_leave_children_that_work(void)
{
    pthread_t threads[THREADS];
    start_recorder("model_id");
    must_stop = false;
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_until_stopped, NULL), 0);
    }
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct calls calls = {0};
            opscope_handle handle = add_global(counting(&calls));
            run_ranges(op_named("child"), 50);
            CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
            CHECK_EQUAL(calls.ends, 50);
            struct segment *segment = stop_and_read();
            CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 50);
            _exit(0);
        }
        CHECK(check_child(child));
    }
    __atomic_store_n(&must_stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* ---- sudden death --------------------------------------------------------------------------- */

enum { KILLS = 12 };

/* State of one thread of the killed process, in memory that outlives it. */
struct truth {
    uint64_t opened; /* stored before the range opens */
    uint64_t closed; /* after it closed */
    uint64_t padding[6];
};
static struct truth *truth;

static void *count_truly(void *at)
{
    struct truth *mine = at;
    const opscope_op *op = op_named("killed");
    for (;;) {
        __atomic_store_n(&mine->opened, mine->opened + 1, __ATOMIC_SEQ_CST);
        run_ranges(op, 1);
        __atomic_store_n(&mine->closed, mine->closed + 1, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static void run_until_killed(void)
{
    pthread_t threads[THREADS];
    start_recorder("");
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, count_truly, &truth[i]), 0);
    }
    pthread_join(threads[0], NULL);
}

static uint64_t sum(bool closed)
{
    uint64_t total = 0;
    for (int i = 0; i < THREADS; i++) {
        total += __atomic_load_n(closed ? &truth[i].closed : &truth[i].opened, __ATOMIC_SEQ_CST);
    }
    return total;
}

static void of_a_killed_process_at_most_the_ranges_in_flight_are_missing(void)
{
    truth = mmap(NULL, THREADS * sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    CHECK(truth != MAP_FAILED);
    for (int kill_count = 0; kill_count < KILLS; kill_count++) {
        memset(truth, 0, THREADS * sizeof *truth);
        pid_t child = fork();
        if (child == 0) {
            run_until_killed();
            _exit(1);
        }
        uint64_t moment = (uint64_t)1 << kill_count;
        while (sum(true) < moment) {
            sched_yield();
        }
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        for (long spin = now.tv_nsec % 9973; spin > 0; spin--) { /* anywhere within a range */
            __asm__ volatile("" ::: "memory");
        }
        CHECK_EQUAL(kill(child, SIGKILL), 0);
        int status;
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        struct segment *segment = read_childs();
        struct totals totals = segment_sum_of(segment, "killed");
        CHECK(totals.samples >= sum(true) && totals.samples <= sum(false));
        CHECK(totals.weight + THREADS * ONE >= totals.samples * ONE);
        CHECK(totals.histogram_weight + THREADS * ONE >= totals.samples * ONE);
        CHECK(totals.histogram_weight <= totals.samples * ONE);
        CHECK_EQUAL(segment->header->dropped_count, 0);
        segment_free(segment);
        empty_directory();
    }
    munmap(truth, THREADS * sizeof *truth);
}

int main(void)
{
    make_directory();
    RUN(of_a_killed_process_at_most_the_ranges_in_flight_are_missing);
    RUN(a_child_counts_in_a_segment_of_its_own_and_the_parents_is_not_touched);
    RUN(a_child_that_runs_nothing_makes_no_segment);
    RUN(a_child_may_stop_and_start_for_itself);
    RUN(windows_go_on_in_a_child);
    RUN(forks_while_other_threads_run_operators_leave_children_that_work);
    remove_directory();
    return 0;
}
