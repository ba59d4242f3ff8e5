/* tests/native/test_trace_life.c -- starts, stops and deadlines of a trace; a full file; a system
 * that refuses memory; forks, exits and kills during a trace. */
#define _GNU_SOURCE
#include "opscope/fork.h"
#include "read_segment.h"
#include "read_trace.h"
#include "recorder/control.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

/* The result of madvise for requests to allocate pages, after that many successful ones; 0: the
 * real one. */
static int populate_error, populate_after;
static int fallocate_error;

int madvise(void *start, size_t bytes, int advice)
{
    int (*real)(void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "madvise");
    if (advice == 23 && populate_error != 0 && populate_after-- <= 0) {
        errno = populate_error;
        return -1;
    }
    return real(start, bytes, advice);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    int (*real)(int, off_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
    return fallocate_error != 0 ? fallocate_error : real(fd, offset, bytes);
}

static void bad_options_are_refused(void)
{
    make_trace_file();
    CHECK_EQUAL(opscope_trace_stop(), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(start_trace_with(OPSCOPE_TRACE_LEAST_BYTES - 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_trace_with((uint64_t)OPSCOPE_TRACE_MOST_BYTES + 1, 0, 0),
                OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_trace_with(0, 3600000000001, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_trace_with(0, 0, 2), OPSCOPE_ERR_INVALID);
    opscope_trace_options options = {.fd = -1};
    CHECK_EQUAL(opscope_trace_start(&options), OPSCOPE_ERR_INVALID);
    options.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK_EQUAL(opscope_trace_start(&options), OPSCOPE_ERR_IO);
    close(options.fd);
    CHECK(!opscope_has_callbacks());
}

static void one_at_a_time_and_each_from_the_beginning(void)
{
    opscope_trace_status status;
    for (int i = 0; i < 5; i++) {
        start_trace();
        CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_ERR_BUSY);
        run_ranges(op_named("a"), 3);
        opscope_trace_read_status(&status);
        CHECK(status.running && status.serial == 7 && status.used_bytes > 0);
        struct trace trace = stop_and_read_trace();
        opscope_trace_read_status(&status);
        CHECK(!status.running && status.serial == 7);
        CHECK_EQUAL(trace_ranges(&trace, "a"), 3);
        trace_free(&trace);
    }
}

static void a_full_trace_keeps_what_is_there_and_counts_the_rest(void)
{
    enum { RANGES = 100000 };
    make_trace_file();
    CHECK_EQUAL(start_trace_with(OPSCOPE_TRACE_LEAST_BYTES, 0, 0), OPSCOPE_OK);
    run_ranges(op_named("a"), RANGES);
    run_ranges(op_named("too late"), 10);
    struct trace trace = stop_and_read_trace();
    uint64_t there = trace_ranges(&trace, "a");
    CHECK(there > OPSCOPE_TRACE_LEAST_BYTES / sizeof(opscope_trace_record) * 9 / 10);
    CHECK_EQUAL(there + trace_lost(&trace), RANGES + 10);
    CHECK_EQUAL(trace_op(&trace, "too late"), 0);
    trace_free(&trace);
}

static void *run_many(void *op)
{
    run_ranges(op, 20000);
    return NULL;
}

static void what_threads_find_no_room_for_is_counted(void)
{
    pthread_t threads[80];
    make_trace_file();
    CHECK_EQUAL(start_trace_with(OPSCOPE_TRACE_LEAST_BYTES, 0, 0), OPSCOPE_OK);
    for (int i = 0; i < 80; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_many, (void *)(uintptr_t)op_named("a")),
                    0);
        if (i % 8 == 7) {
            for (int k = i - 7; k <= i; k++) {
                CHECK_EQUAL(pthread_join(threads[k], NULL), 0);
            }
        }
    }
    struct trace trace = stop_and_read_trace();
    CHECK(trace.header->lost_count > 0); /* of threads that came too late for a block */
    CHECK_EQUAL(trace_ranges(&trace, "a") + trace_lost(&trace), 80 * 20000);
    trace_free(&trace);
}

static void the_deadline_ends_it_at_the_next_range(void)
{
    make_trace_file();
    CHECK_EQUAL(start_trace_with(0, 1, 0), OPSCOPE_OK);
    run_ranges(op_named("late"), 10);
    CHECK(!opscope_has_callbacks());
    struct trace trace = trace_read();
    CHECK_EQUAL(trace.header->state, OPSCOPE_TRACE_CLOSED);
    CHECK_EQUAL(trace_op(&trace, "late"), 0);
    CHECK_EQUAL(opscope_trace_stop(), OPSCOPE_ERR_NOT_FOUND);
    trace_free(&trace);
}

static void the_deadline_ends_it_without_a_range_when_somebody_comes_by(void)
{
    make_trace_file();
    CHECK_EQUAL(start_trace_with(0, 1, 0), OPSCOPE_OK);
    opscope__trace_control->poll();
    CHECK(!opscope_has_callbacks());
    start_trace(); /* so does the start of the next */
    struct trace trace = stop_and_read_trace();
    trace_free(&trace);
    CHECK_EQUAL(start_trace_with(0, 1, 0), OPSCOPE_OK);
    CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_OK);
    CHECK_EQUAL(opscope_trace_stop(), OPSCOPE_OK);
}

static void callbacks_cleared_in_the_middle_do_no_harm(void)
{
    opscope_range range;
    start_trace();
    opscope_range_open(&range, op_named("a"), NULL);
    opscope_clear_callbacks();
    run_ranges(op_named("b"), 3);
    struct trace trace = stop_and_read_trace();
    opscope_range_close(&range);
    run_ranges(op_named("b"), 3);
    CHECK_EQUAL(trace_ranges(&trace, "a"), 1);
    CHECK_EQUAL(trace_op(&trace, "b"), 0);
    trace_free(&trace);
}

static void a_range_that_outlives_its_trace_ends_in_no_other_trace(void)
{
    opscope_range range;
    start_trace();
    opscope_range_open(&range, op_named("first"), NULL);
    struct trace first = stop_and_read_trace();
    start_trace();
    run_ranges(op_named("second"), 1);
    opscope_range_close(&range);
    struct trace second = stop_and_read_trace();
    uint64_t ended;
    CHECK_EQUAL(trace_count(&second, OPSCOPE_TRACE_RANGE, 0, &ended), 1);
    CHECK_EQUAL(trace_range(&first, "first")->end_ticks, 0);
    trace_free(&first);
    trace_free(&second);
}

static void no_room_at_the_start_is_said(void)
{
    make_trace_file();
    populate_error = EFAULT;
    CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_ERR_NO_SPACE);
    populate_error = EINVAL; /* a kernel that cannot: allocates everything at once */
    fallocate_error = ENOSPC;
    CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_ERR_NO_SPACE);
    populate_error = fallocate_error = 0;
    struct rlimit limit, before;
    CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){1 << 20, before.rlim_max};
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_ERR_NO_SPACE);
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK(!opscope_has_callbacks());
}

static void an_old_kernel_has_the_whole_file_reserved(void)
{
    make_trace_file();
    populate_error = EINVAL;
    CHECK_EQUAL(start_trace_with(2u << 20, 0, 0), OPSCOPE_OK);
    struct stat info;
    CHECK_EQUAL(fstat(trace_fd, &info), 0);
    CHECK(info.st_blocks * 512 >= info.st_size);
    run_ranges(op_named("a"), 10000);
    populate_error = 0;
    struct trace trace = stop_and_read_trace();
    CHECK_EQUAL(trace_ranges(&trace, "a"), 10000);
    trace_free(&trace);
}

static void room_that_runs_out_later_is_lost_ranges_and_errno_is_the_programs(void)
{
    make_trace_file();
    populate_error = EFAULT;
    populate_after = 2; /* the header, the first blocks */
    CHECK_EQUAL(start_trace_with(OPSCOPE_TRACE_LEAST_BYTES, 0, 0), OPSCOPE_OK);
    errno = 1234;
    run_ranges(op_named("a"), 100000);
    CHECK_EQUAL(errno, 1234);
    populate_error = populate_after = 0;
    struct trace trace = stop_and_read_trace();
    CHECK(trace_ranges(&trace, "a") > 0);
    CHECK_EQUAL(trace_ranges(&trace, "a") + trace_lost(&trace), 100000);
    trace_free(&trace);
    make_trace_file();
    populate_error = EFAULT;
    populate_after = 1; /* the header alone */
    CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_OK);
    run_ranges(op_named("a"), 10);
    populate_error = populate_after = 0;
    trace = stop_and_read_trace();
    CHECK_EQUAL(trace_lost(&trace), 10);
    trace_free(&trace);
}

static void a_forked_child_is_not_in_its_parents_trace(void)
{
    opscope_range range, open;
    start_trace();
    run_ranges(op_named("before"), 10);
    opscope_range_open(&open, op_named("open"), NULL);
    opscope_range_open(&range, op_named("across"), NULL);
    pid_t pid = fork();
    if (pid == 0) {
        run_ranges(op_named("child"), 1000);
        opscope_range_close(&range);
        opscope_range_close(&open);
        CHECK(!opscope_has_callbacks());
        CHECK_EQUAL(opscope_trace_stop(), OPSCOPE_ERR_NOT_FOUND);
        start_trace(); /* the child's own trace */
        run_ranges(op_named("child"), 3);
        struct trace trace = stop_and_read_trace();
        CHECK_EQUAL(trace_ranges(&trace, "child"), 3);
        CHECK_EQUAL(trace.header->pid, getpid());
        _exit(0);
    }
    CHECK(check_child(pid));
    opscope_range_close(&range);
    run_ranges(op_named("after"), 10);
    struct trace trace = stop_and_read_trace();
    CHECK_EQUAL(trace_op(&trace, "child"), 0);
    CHECK_EQUAL(trace_ranges(&trace, "before") + trace_ranges(&trace, "after"), 20);
    CHECK(trace_range(&trace, "across")->end_ticks != 0);
    CHECK_EQUAL(trace_range(&trace, "open")->end_ticks, 0); /* its end was in the child */
    opscope_range_close(&open);
    trace_free(&trace);
}

static void what_an_ending_process_had_written_can_be_read(void)
{
    static const int signals[] = {0, SIGKILL};
    for (int i = 0; i < 2; i++) {
        make_trace_file();
        pid_t pid = fork();
        if (pid == 0) {
            opscope_range range;
            CHECK_EQUAL(start_trace_with(0, 0, 0), OPSCOPE_OK);
            run_ranges(op_named("a"), 5000);
            opscope_range_open(&range, op_named("open"), NULL);
            if (signals[i] != 0) {
                raise(signals[i]);
            }
            exit(0);
        }
        int status;
        CHECK_EQUAL(waitpid(pid, &status, 0), pid);
        struct trace trace = trace_read();
        CHECK_EQUAL(trace.header->state, OPSCOPE_TRACE_LIVE);
        CHECK_EQUAL(trace_ranges(&trace, "a"), 5000);
        CHECK_EQUAL(trace_range(&trace, "open")->end_ticks, 0);
        trace_free(&trace);
    }
}

static void the_recorder_counts_what_the_trace_shows(void)
{
    make_directory();
    start_recorder("");
    run_ranges(op_named("a"), 10);
    start_trace();
    run_ranges(op_named("a"), 100);
    struct trace trace = stop_and_read_trace();
    run_ranges(op_named("a"), 10);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(trace_ranges(&trace, "a"), 100);
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 120);
    segment_free(segment);
    trace_free(&trace);
    remove_directory();
}

static void a_requested_trace_goes_into_a_file_beside_the_segment(void)
{
    char segment_path[128], path[160];
    make_directory();
    snprintf(segment_path, sizeof segment_path, "%s/1-2-3.seg", directory);
    snprintf(path, sizeof path, "%s.trace", segment_path);
    CHECK_EQUAL(opscope__trace_control->start(segment_path, 5, 0, 0, 0), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope__trace_control->start(segment_path, 5, 1, 1, 0), OPSCOPE_ERR_INVALID);
    CHECK(access(path, F_OK) != 0);
    for (uint64_t serial = 1; serial <= 2; serial++) { /* the first one is not fetched */
        CHECK_EQUAL(opscope__trace_control->start(segment_path, serial, 1000000000, 0, 0),
                    OPSCOPE_OK);
        run_ranges(op_named("a"), 10);
        CHECK_EQUAL(serial == 1 ? opscope_trace_stop()
                                : opscope__trace_control->start(segment_path, serial + 1, 0, 0, 0),
                    OPSCOPE_OK);
        close(trace_fd);
        trace_fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat info;
        CHECK(fstat(trace_fd, &info) == 0 && (info.st_mode & 0777) == 0600);
        struct trace trace = trace_read();
        CHECK_EQUAL(trace.header->serial, serial);
        CHECK_EQUAL(trace.header->duration_ns, 1000000000);
        CHECK_EQUAL(trace_ranges(&trace, "a"), 10);
        trace_free(&trace);
    }
    start_trace();
    CHECK_EQUAL(opscope__trace_control->start(segment_path, 4, 1000000000, 0, 0), OPSCOPE_ERR_BUSY);
    CHECK_EQUAL(opscope__trace_control->start(segment_path, 5, 0, 0, 0),
                OPSCOPE_ERR_NOT_FOUND); /* not a requested trace */
    struct trace trace = stop_and_read_trace();
    trace_free(&trace);
    CHECK(access(path, F_OK) != 0);
    CHECK_EQUAL(rmdir(directory), 0);
    CHECK_EQUAL(opscope__trace_control->start(segment_path, 4, 1000000000, 0, 0), OPSCOPE_ERR_IO);
}

int main(void)
{
    RUN(bad_options_are_refused);
    RUN(one_at_a_time_and_each_from_the_beginning);
    RUN(a_full_trace_keeps_what_is_there_and_counts_the_rest);
    RUN(what_threads_find_no_room_for_is_counted);
    RUN(the_deadline_ends_it_at_the_next_range);
    RUN(the_deadline_ends_it_without_a_range_when_somebody_comes_by);
    RUN(callbacks_cleared_in_the_middle_do_no_harm);
    RUN(a_range_that_outlives_its_trace_ends_in_no_other_trace);
    RUN(no_room_at_the_start_is_said);
    RUN(an_old_kernel_has_the_whole_file_reserved);
    RUN(room_that_runs_out_later_is_lost_ranges_and_errno_is_the_programs);
    RUN(a_forked_child_is_not_in_its_parents_trace);
    RUN(what_an_ending_process_had_written_can_be_read);
    RUN(the_recorder_counts_what_the_trace_shows);
    RUN(a_requested_trace_goes_into_a_file_beside_the_segment);
    return 0;
}
