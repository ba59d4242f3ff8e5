/* tests/native/test_sandbox.c -- a program that gives up system calls permanently after its first
 * recorded range: a call that is not in the lists below ends the process, with filters on one
 * thread or on all.
 *
 * Each case runs in a child. If the recorder makes another call, the filter ends the child with
 * SIGSYS. The test reads the child's records from outside.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ranges.h"
#include "read_segment.h"
#include "recorder/control.h"
#include "segment/sandbox.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* All calls of the recorder from its first range on. */
static const int of_recorder[] = {SYS_futex, SYS_clock_gettime, SYS_madvise};
/* The C library's, for memory and for exit. */
static const int of_c_library[] = {SYS_mmap, SYS_munmap,     SYS_mprotect,    SYS_mremap,
                                   SYS_brk,  SYS_exit_group, SYS_rt_sigreturn};
/* The calls needed for a thread or a child, and the one with which the recorder checks for
 * filters. */
static const int of_a_thread[] = {SYS_rt_sigaction,    SYS_clone,           SYS_clone3, SYS_rseq,
                                  SYS_set_robust_list, SYS_rt_sigprocmask,  SYS_exit,   SYS_wait4,
                                  SYS_gettid,          SYS_set_tid_address, SYS_getpid};
static const int of_a_fork[] = {SYS_clone, SYS_set_robust_list, SYS_rt_sigprocmask, SYS_exit,
                                SYS_wait4, SYS_gettid,          SYS_getpid};
static const int asks_first[] = {SYS_prctl};

static bool is_old_kernel;

int madvise(void *start, size_t bytes, int advice)
{
    int (*real)(void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "madvise");
    if (is_old_kernel && advice == MADV_POPULATE_WRITE) {
        errno = EINVAL;
        return -1;
    }
    return real(start, bytes, advice);
}

/* ---- the filter ----------------------------------------------------------------------------------- */

static struct sock_filter filter[64] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
static unsigned short filter_length = 1;

static void allow(const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sock_filter is_it[] = {
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        CHECK(filter_length + 3 < (int)(sizeof filter / sizeof *filter));
        memcpy(&filter[filter_length], is_it, sizeof is_it);
        filter_length = (unsigned short)(filter_length + 2);
    }
}

#define ALLOW(calls) allow(calls, sizeof(calls) / sizeof *(calls))

static void forbid_the_rest(bool of_all_threads)
{
    const struct sock_filter kill[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    ALLOW(of_recorder);
    ALLOW(of_c_library);
    filter[filter_length++] = kill[0];
    struct sock_fprog program = {.len = filter_length, .filter = filter};
    CHECK_EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQUAL(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                        of_all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program),
                0);
}

/* ---- the program ---------------------------------------------------------------------------------- */

enum { OPERATORS = 3000 };

static const opscope_op *ops[OPERATORS];

static void name_operators(void)
{
    for (int i = 0; i < OPERATORS; i++) {
        char name[32];
        snprintf(name, sizeof name, "new::%d", i);
        ops[i] = op_named(name);
    }
}

static uint64_t run_all(uint64_t times)
{
    for (uint64_t round = 0; round < times; round++) {
        for (int i = 0; i < OPERATORS; i++) {
            run_ranges(ops[i], 1);
        }
    }
    return times * OPERATORS;
}

/* The segment of a child that ran `program` to its end. */
static struct segment *left_by(void (*program)(bool), bool of_all_threads)
{
    char path[512];
    empty_directory();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        program(of_all_threads);
        syscall(SYS_exit_group, 0);
    }
    CHECK(check_child(child));
    CHECK_EQUAL(list_directory(path, sizeof path), 1);
    return segment_read(path);
}

static void start_with(uint64_t window_ns, uint64_t period_ns, uint64_t max_overhead_ppb)
{
    const opscope_recorder_options options = {.directory = directory,
                                              .sampling_prob = 1.0,
                                              .window_ns = window_ns,
                                              .period_ns = period_ns,
                                              .max_overhead_ppb = max_overhead_ppb};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_of("first", OPSCOPE_USER_SCOPE, OPSCOPE_FORWARD), 1);
}

/* ---- growing -------------------------------------------------------------------------------------- */

static void grow(bool of_all_threads)
{
    start_with(0, 0, 0);
    forbid_the_rest(of_all_threads);
    name_operators();
    run_all(3);
}

static void a_segment_grows_by_no_new_kind_of_call(void)
{
    for (int all = 0; all < 2; all++) {
        struct segment *segment = left_by(grow, all != 0);
        CHECK(segment->header->chunk_count > 50);
        CHECK_EQUAL(segment->header->folded_count, 0);
        CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 3 * OPERATORS + 1);
        segment_free(segment);
    }
}

static void *run_some(void *unused)
{
    (void)unused;
    run_all(1);
    return NULL;
}

static void grow_by_threads(bool of_all_threads)
{
    pthread_t threads[4];
    start_with(0, 0, 0);
    name_operators();
    ALLOW(of_a_thread);
    forbid_the_rest(of_all_threads);
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_some, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

static void threads_that_come_later_make_no_new_kind_of_call(void)
{
    struct segment *segment = left_by(grow_by_threads, true);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 4 * OPERATORS + 1);
    segment_free(segment);
}

static void grow_on_an_old_kernel(bool of_all_threads)
{
    is_old_kernel = true;
    ALLOW(asks_first);
    grow(of_all_threads);
}

static void an_old_kernel_does_not_grow_under_a_new_filter(void)
{
    struct segment *segment = left_by(grow_on_an_old_kernel, true);
    CHECK(segment->header->folded_count > 0);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 3 * OPERATORS + 1);
    segment_free(segment);
}

/* ---- windows -------------------------------------------------------------------------------------- */

/* Waits until the window thread has begun, which ends with setting its name. */
static void wait_for_thread(void)
{
    char path[64], name[32] = "";
    while (strcmp(name, "opscope-window\n") != 0) {
        DIR *tasks = opendir("/proc/self/task");
        CHECK(tasks != NULL);
        for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
            snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", task->d_name);
            FILE *file = strtol(task->d_name, NULL, 10) != getpid() ? fopen(path, "re") : NULL;
            if (file != NULL) {
                CHECK(fgets(name, sizeof name, file) != NULL);
                fclose(file);
            }
        }
        closedir(tasks);
    }
}

/* Waits until windows have passed and the governor has made them rarer. It does so after half a
 * second, and may make them very rare on a busy machine. */
enum { WINDOWS = 10 };

static void pass_windows(bool of_all_threads)
{
    char path[512];
    start_with(2000000, 10000000, 1000);
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    memcpy(path, status.path, sizeof status.path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const opscope_segment_header *header = mmap(NULL, sizeof *header, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(header != MAP_FAILED);
    wait_for_thread();
    forbid_the_rest(of_all_threads);
    name_operators();
    while (__atomic_load_n(&header->adaptation_count, __ATOMIC_RELAXED) == 0 ||
           __atomic_load_n(&header->window_count, __ATOMIC_RELAXED) < WINDOWS) {
        run_all(1);
    }
}

static void windows_pass_by_no_new_kind_of_call(void)
{
    for (int all = 0; all < 2; all++) {
        struct segment *segment = left_by(pass_windows, all != 0);
        struct totals sum = segment_sum(segment, 0, ANY, ANY);
        CHECK(segment->header->window_count >= WINDOWS);
        CHECK(segment->header->chunk_count > 50);
        CHECK_EQUAL(segment->header->folded_count, 0);
        CHECK(sum.samples > OPERATORS);
        CHECK_EQUAL(sum.histogram_weight, sum.weight);
        segment_free(segment);
    }
}

/* ---- what does need files ------------------------------------------------------------------------- */

static void run_in_child(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        run_ranges(op_of("in child", OPSCOPE_USER_SCOPE, OPSCOPE_FORWARD), 10);
        syscall(SYS_exit_group, 0);
    }
    CHECK_EQUAL(syscall(SYS_wait4, child, &status, 0, NULL), child);
    CHECK_EQUAL(status, 0);
}

static void fork_and_run(bool of_all_threads)
{
    start_with(2000000, 250000000, 0);
    wait_for_thread();
    CHECK(!opscope__sandbox_is_new());
    ALLOW(of_a_fork); /* without the calls for a thread: windows end with the fork */
    ALLOW(asks_first);
    forbid_the_rest(of_all_threads);
    CHECK(opscope__sandbox_is_new());
    run_in_child();
}

static void a_forked_child_goes_on_without_a_segment(void)
{
    struct segment *segment = left_by(fork_and_run, true);
    CHECK_EQUAL(segment_sum_of(segment, "in child").samples, 0);
    segment_free(segment);
}

/* ---- with libseccomp ------------------------------------------------------------------------------ */

/* Another library by that name. */
static void load_libseccomp(void)
{
    char path[512];
    struct link_map *library;
    void *original = dlopen("libm.so.6", RTLD_NOW);
    CHECK(original != NULL && dlinfo(original, RTLD_DI_LINKMAP, &library) == 0);
    snprintf(path, sizeof path, "%s/libseccomp.so.2", directory);
    FILE *from = fopen(library->l_name, "re"), *to = fopen(path, "we");
    CHECK(from != NULL && to != NULL);
    for (int byte; (byte = fgetc(from)) != EOF;) {
        CHECK(fputc(byte, to) != EOF);
    }
    CHECK_EQUAL(fclose(to), 0);
    fclose(from);
    CHECK(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL);
    CHECK_EQUAL(unlink(path), 0);
}

static void fork_with_libseccomp(bool of_all_threads)
{
    start_with(2000000, 250000000, 0);
    wait_for_thread();
    CHECK(!opscope__sandbox_is_likely());
    load_libseccomp();
    CHECK(opscope__sandbox_is_likely());
    ALLOW(of_a_fork);
    forbid_the_rest(of_all_threads);
    run_in_child();
    run_ranges(op_of("after the fork", OPSCOPE_USER_SCOPE, OPSCOPE_FORWARD), 10);
}

static void with_libseccomp_a_fork_asks_for_no_filter(void)
{
    for (int all = 0; all < 2; all++) {
        struct segment *segment = left_by(fork_with_libseccomp, all != 0);
        CHECK_EQUAL(segment_sum_of(segment, "in child").samples, 0);
        segment_free(segment);
    }
}

static void begin_with_libseccomp(bool of_all_threads)
{
    const opscope_recorder_options options = {
        .directory = directory, .window_ns = 2000000, .period_ns = 250000000};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    load_libseccomp();
    forbid_the_rest(of_all_threads);
    run_ranges(op_named("first"), 10);
}

static void with_libseccomp_the_first_range_asks_for_no_filter(void)
{
    segment_free(left_by(begin_with_libseccomp, true));
}

/* ---- a trace -------------------------------------------------------------------------------------- */

static void request_a_trace(bool of_all_threads)
{
    char path[512];
    start_with(0, 0, 0);
    CHECK_EQUAL(list_directory(path, sizeof path), 1);
    ALLOW(asks_first);
    forbid_the_rest(of_all_threads);
    CHECK_EQUAL(opscope__trace_control->start(path, 1, 1000000000, 0, 0), OPSCOPE_ERR_PERMISSION);
}

static void a_trace_is_refused(void)
{
    segment_free(left_by(request_a_trace, true));
}

int main(void)
{
    if (IS_SANITIZED) {
        return 0; /* sanitizers make calls of their own */
    }
    make_directory();
    RUN(a_segment_grows_by_no_new_kind_of_call);
    RUN(threads_that_come_later_make_no_new_kind_of_call);
    RUN(an_old_kernel_does_not_grow_under_a_new_filter);
    RUN(windows_pass_by_no_new_kind_of_call);
    RUN(a_forked_child_goes_on_without_a_segment);
    RUN(with_libseccomp_a_fork_asks_for_no_filter);
    RUN(with_libseccomp_the_first_range_asks_for_no_filter);
    RUN(a_trace_is_refused);
    remove_directory();
    return 0;
}
