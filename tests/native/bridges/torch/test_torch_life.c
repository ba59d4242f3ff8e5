/* tests/native/bridges/torch/test_torch_life.c -- the PyTorch bridge with windows, threads, forks
 * and at exit, on a fake PyTorch that ends the process if its registry is used too late. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "attached.h"
#include "read_segment.h"

/* Under these sanitizers a fork takes a tenth of a second. The address sanitizer's allocator holds
 * no lock over a fork before LLVM 17: the child of a program whose threads allocate may wait for
 * ever in malloc. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IS_SLOW 1
#endif
#if __has_feature(address_sanitizer)
#define CHILDREN_CANNOT_ALLOCATE 1
#endif
#endif
#if defined(IS_SLOW)
enum { THREADS = 8, WINDOWS = 1000, FORKS = 100 };
#else
enum { THREADS = 8, WINDOWS = 10000, FORKS = 1000 };
#endif

static bool is_over; /* store_release by main, load_acquire by the threads */

static void *work(void *count)
{
    uint64_t *ops = count;
    struct fake_function outer, inner;
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        fake_open(&outer, "aten::linear", "", OPSCOPE_FUNCTION);
        fake_open(&inner, "aten::addmm", "", OPSCOPE_FUNCTION);
        fake_close(&inner);
        fake_close(&outer);
        __atomic_store_n(ops, *ops + 1, __ATOMIC_RELAXED);
        sched_yield(); /* there may be fewer processors than threads */
    }
    return NULL;
}

static pthread_t threads[THREADS];
static uint64_t op_counts[THREADS];

static uint64_t op_count(void)
{
    uint64_t count = 0;
    for (int i = 0; i < THREADS; i++) {
        count += __atomic_load_n(&op_counts[i], __ATOMIC_RELAXED);
    }
    return count;
}

static void start_threads(void)
{
    __atomic_store_n(&is_over, false, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, work, &op_counts[i]), 0);
    }
}

static void join_threads(void)
{
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void start_windows(uint64_t window_ns, uint64_t period_ns)
{
    empty_directory();
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = window_ns, .period_ns = period_ns};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
}

static void windows_open_and_close_under_running_threads(void)
{
    start_windows(10000000, 1000000000000000);
    const uint64_t before = opscope_torch_added_count();
    start_threads();
    for (int i = 0; i < WINDOWS; i++) {
        CHECK_EQUAL(opscope_recorder_window_begin(1.0), OPSCOPE_OK);
        const uint64_t count = op_count();
        while (op_count() == count) {
            sched_yield();
        }
        CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_OK);
    }
    join_threads();
    CHECK_EQUAL(opscope_torch_added_count() - before, WINDOWS);
    CHECK_EQUAL(fake_callback_count(), 1); /* the one for outer ranges */
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment->header->window_count, WINDOWS);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    CHECK(segment_sum_of(segment, "aten::addmm").samples > 0);
    segment_free(segment);
}

#if !defined(CHILDREN_CANNOT_ALLOCATE)

/* In a forked child, no lock is held, and its operators are recorded in its own segment. The child
 * removes that: a recorder that starts looks at each segment of its directory. */
static int child_of(pid_t parent)
{
    for (int i = 0; i < 10; i++) {
        run_op("aten::child", "");
    }
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    char prefix[64];
    (void)snprintf(prefix, sizeof prefix, "%ld-", (long)parent);
    const char *name = strrchr(status.path, '/');
    const bool is_own = name != NULL && strncmp(name + 1, prefix, strlen(prefix)) != 0;
    const bool is_removed = is_own && unlink(status.path) == 0;
    return status.running && is_removed && opscope_torch_is_called() && fake_callback_count() == 1
               ? 0
               : 1;
}

static void children_of_forks_within_windows_go_on_by_themselves(void)
{
    start_windows(20000, 30000);
    start_threads();
    for (int i = 0; i < FORKS; i++) {
        const pid_t parent = getpid();
        pid_t pid = fork();
        if (pid == 0) {
            /* No windows here: one could open and close between the operators and the check. */
            opscope_recorder_set_sampling(1.0, 0, 0);
            _exit(child_of(parent));
        }
        CHECK(check_child(pid));
    }
    join_threads();
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    empty_directory();
}

#endif

/* A child that exits in the middle of a window, after PyTorch has destroyed its registry. */
static void a_child_draws_otherwise_than_its_parent(void)
{
    const uint64_t of_parent = fake_last_seed();
    pid_t pid = fork();
    if (pid == 0) {
        _exit(fake_last_seed() == of_parent);
    }
    CHECK(check_child(pid));
    CHECK_EQUAL(fake_last_seed(), of_parent);
}

static void exit_in_the_middle_of_a_window_is_an_exit(void)
{
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            start_windows(20000, 20001);
            run_op("aten::add", "Tensor");
            exit(0);
        }
        CHECK(check_child(pid));
    }
    empty_directory();
}

int main(void)
{
    make_directory();
    attach();
    RUN(windows_open_and_close_under_running_threads);
#if !defined(CHILDREN_CANNOT_ALLOCATE)
    RUN(children_of_forks_within_windows_go_on_by_themselves);
#endif
    RUN(a_child_draws_otherwise_than_its_parent);
    RUN(exit_in_the_middle_of_a_window_is_an_exit);
    remove_directory();
    return 0;
}
