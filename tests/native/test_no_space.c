/* tests/native/test_no_space.c -- the recorder when the operating system refuses: the test replaces
 * four of its calls, which fail on request. Blocks are reserved by madvise(2); if that returns
 * EINVAL, as on kernels before 5.14, by posix_fallocate(3). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "ranges.h"
#include "read_segment.h"
#include "segment/identity.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static bool is_old_kernel;

/* Which call fails next, with which error, and after how many successful calls. */
static struct {
    int populate_error, fallocate_error, openat_error, rename_error;
    int after;
    int times; /* how often; then all calls succeed again */
} fault;

static bool fails(int error)
{
    if (error == 0 || fault.times == 0 || fault.after-- > 0) {
        return false;
    }
    fault.times--;
    return true;
}

int madvise(void *start, size_t bytes, int advice)
{
    int (*real)(void *, size_t, int);
    *(void **)&real = dlsym(RTLD_NEXT, "madvise");
    const int error = advice != MADV_POPULATE_WRITE ? 0
                      : is_old_kernel               ? EINVAL
                      : fails(fault.populate_error) ? fault.populate_error
                                                    : 0;
    if (error != 0) {
        errno = error;
        return -1;
    }
    return real(start, bytes, advice);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    int (*real)(int, off_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
    return fails(fault.fallocate_error) ? fault.fallocate_error : real(fd, offset, bytes);
}

int openat(int directory_fd, const char *path, int flags, ...)
{
    int (*real)(int, const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    *(void **)&real = dlsym(RTLD_NEXT, "openat");
    if (fails(fault.openat_error)) {
        errno = fault.openat_error;
        return -1;
    }
    return real(directory_fd, path, flags, mode);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    if (fails(fault.rename_error)) {
        errno = fault.rename_error;
        return -1;
    }
    return real(from, to);
}

static void start_fails_with(int status)
{
    char path[512];
    opscope_recorder_options options = {.directory = directory, .sampling_prob = 1.0};
    opscope_recorder_status after;
    empty_directory();
    fault.times = 1000;
    CHECK_EQUAL(opscope_recorder_start(&options), status);
    memset(&fault, 0, sizeof fault);
    opscope_recorder_read_status(&after);
    CHECK(!after.running && !opscope_has_callbacks());
    run_ranges(op_named("a"), 10);
    CHECK_EQUAL(list_directory(path, sizeof path), 0); /* nothing is left, not even a hidden file */
}

static void no_room_for_the_file_is_no_space(void)
{
    fault.populate_error = EFAULT; /* would have been SIGBUS */
    start_fails_with(OPSCOPE_ERR_NO_SPACE);
    fault.populate_error = ENOMEM;
    start_fails_with(OPSCOPE_ERR_NO_MEMORY);
}

static void no_room_for_the_file_on_an_old_kernel_is_no_space(void)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG};
    is_old_kernel = true;
    for (int i = 0; i < 3; i++) {
        fault.fallocate_error = errors[i];
        start_fails_with(OPSCOPE_ERR_NO_SPACE);
    }
    fault.fallocate_error = EOPNOTSUPP;
    start_fails_with(OPSCOPE_ERR_IO);
    is_old_kernel = false;
}

static void a_read_only_file_system_is_read_only(void)
{
    fault.openat_error = EROFS;
    start_fails_with(OPSCOPE_ERR_READ_ONLY);
}

static void other_errors_have_their_status(void)
{
    fault.openat_error = EACCES;
    start_fails_with(OPSCOPE_ERR_PERMISSION);
    fault.openat_error = EMFILE;
    start_fails_with(OPSCOPE_ERR_IO);
}

static void a_file_that_cannot_be_published_is_removed(void)
{
    fault.rename_error = EIO;
    start_fails_with(OPSCOPE_ERR_IO);
}

static void check_that_a_start_goes_well(void)
{
    fault.times = 3;
    start_recorder("");
    CHECK_EQUAL(fault.times, 0);
    memset(&fault, 0, sizeof fault);
    run_ranges(op_named("a"), 10);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 10);
    segment_free(segment);
}

static void a_signal_while_reserving_space_is_no_error(void)
{
    fault.populate_error = EINTR;
    check_that_a_start_goes_well();
    is_old_kernel = true;
    fault.fallocate_error = EINTR;
    check_that_a_start_goes_well();
    is_old_kernel = false;
}

/* Many operators, whose ranges are all counted, in that many chunks. */
static void check_growth(uint32_t least, uint32_t most)
{
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof name, "grow::%d", i);
        run_ranges(op_named(name), 3);
    }
    memset(&fault, 0, sizeof fault);
    struct segment *segment = stop_and_read();
    struct totals all = segment_sum(segment, 0, ANY, ANY);
    CHECK(segment->header->chunk_count >= least && segment->header->chunk_count <= most);
    CHECK_EQUAL(all.samples, 6000);
    CHECK_EQUAL(all.histogram_weight, 6000 * ONE);
    CHECK_EQUAL(segment->header->folded_count > 0, most < 100);
    CHECK_EQUAL(segment_sum(segment, opscope_op_other()->id, ANY, ANY).samples,
                segment->header->folded_count);
    segment_free(segment);
}

static void no_room_to_grow_folds_and_loses_nothing(void)
{
    start_recorder("");
    fault.populate_error = EFAULT;
    fault.after = 1; /* grows once, to 256 KiB */
    fault.times = 1000000;
    check_growth(15, 15);
}

static void an_old_kernel_grows_by_the_files_name(void)
{
    is_old_kernel = true;
    start_recorder("");
    check_growth(16, 1000);
    start_recorder("");
    fault.fallocate_error = ENOSPC;
    fault.after = 1;
    fault.times = 1000000;
    check_growth(15, 15);
    is_old_kernel = false;
}

/* Reads and removes this process's ledger entry, which must say that there was no space. */
static void take_reason(void)
{
    char path[512], text[128], expected[128];
    opscope__identity self;
    opscope__identity_read(&self);
    snprintf(path, sizeof path, "%s/%llu-%llu.why", directory, (unsigned long long)self.pid,
             (unsigned long long)self.process_start);
    ssize_t bytes = readlink(path, text, sizeof text);
    CHECK(bytes > 0 && bytes < (ssize_t)sizeof text);
    text[bytes] = '\0';
    char *rest;
    long long seconds = strtoll(text, &rest, 10);
    CHECK(seconds > 0);
    snprintf(expected, sizeof expected, ":recorder:forked child cannot record: %s",
             opscope_status_text(OPSCOPE_ERR_NO_SPACE));
    CHECK_TEXT(rest, expected);
    CHECK_EQUAL(unlink(path), 0);
}

static void a_child_without_room_for_its_segment_goes_on_unobserved(void)
{
    char path[512];
    start_recorder("");
    run_ranges(op_named("a"), 10);
    pid_t child = fork();
    if (child == 0) {
        fault.populate_error = EFAULT;
        fault.times = 1000;
        run_ranges(op_named("a"), 1000);
        CHECK(fault.times >= 998); /* it does not try again at each range */
        opscope_recorder_status status;
        opscope_recorder_read_status(&status);
        CHECK_TEXT(status.path, "");
        take_reason();
        _exit(0);
    }
    CHECK(check_child(child));
    CHECK_EQUAL(list_directory(path, sizeof path), 1);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 10);
    segment_free(segment);
}

int main(void)
{
    make_directory();
    RUN(no_room_for_the_file_is_no_space);
    RUN(no_room_for_the_file_on_an_old_kernel_is_no_space);
    RUN(a_read_only_file_system_is_read_only);
    RUN(other_errors_have_their_status);
    RUN(a_file_that_cannot_be_published_is_removed);
    RUN(a_signal_while_reserving_space_is_no_error);
    RUN(no_room_to_grow_folds_and_loses_nothing);
    RUN(an_old_kernel_grows_by_the_files_name);
    RUN(a_child_without_room_for_its_segment_goes_on_unobserved);
    remove_directory();
    return 0;
}
