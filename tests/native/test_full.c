/* tests/native/test_full.c -- a full segment: every lost range is counted, and sums stay exact; and
 * the small size of a quiet process's segment. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/resource.h>

#include "opscope/debug_info.h"
#include "ranges.h"
#include "read_segment.h"

static void a_quiet_process_takes_at_most_512_kib_of_disk(void)
{
    start_recorder("model_id");
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "quiet::%d", i);
        run_ranges(op_named(name), 100);
    }
    opscope_recorder_status status;
    struct stat info;
    opscope_recorder_read_status(&status);
    CHECK_EQUAL(stat(status.path, &info), 0);
    CHECK(info.st_blocks * 512 <= 512 << 10);
    int fd = open(status.path, O_RDONLY | O_CLOEXEC);
    struct segment *segment = segment_read(status.path);
    /* No holes in the part in use: touching it cannot fail. */
    CHECK(lseek(fd, 0, SEEK_HOLE) >=
          OPSCOPE_SEGMENT_HEADER_BYTES +
              (off_t)segment->header->chunk_count * OPSCOPE_SEGMENT_CHUNK_BYTES);
    close(fd);
    segment_free(segment);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

/* Every call has its own operator and label set, more than a segment can hold. */
static uint64_t run_many_keys(void)
{
    uint64_t calls = 0;
    for (int label = 0; label < 200; label++) {
        char value[32];
        opscope_debug_info_guard guard;
        snprintf(value, sizeof value, "%d", label);
        CHECK_EQUAL(opscope_debug_info_push("model_id", value, &guard), OPSCOPE_OK);
        for (int i = 0; i < 500; i++) {
            char name[32];
            snprintf(name, sizeof name, "key::%d", i);
            const opscope_op *op = op_named(name);
            opscope_range range;
            opscope_range_open(&range, op, NULL);
            if (i % 10 == 0) {
                opscope_range_fail(&range);
            }
            opscope_range_close(&range);
            calls++;
        }
        opscope_debug_info_pop(&guard);
    }
    return calls;
}

static void check_full(struct segment *segment, uint64_t calls)
{
    struct totals all = segment_sum(segment, 0, ANY, ANY);
    struct totals other = segment_sum(segment, opscope_op_other()->id, ANY, ANY);
    CHECK(segment->size <= 16u << 20);
    CHECK(segment->header->folded_count > 0);
    CHECK_EQUAL(all.samples + segment->header->dropped_count, calls);
    CHECK_EQUAL(all.weight, all.samples * ONE);
    CHECK_EQUAL(all.histogram_weight, all.weight);
    CHECK_EQUAL(all.error_weight, calls / 10 * ONE);
    CHECK_EQUAL(other.samples, segment->header->folded_count);
    CHECK_EQUAL(all.self_ticks, all.total_ticks); /* there was no nesting */
}

static void a_full_table_folds_what_is_new_into_other_and_sums_stay_exact(void)
{
    start_recorder("model_id");
    uint64_t calls = run_many_keys();
    calls += run_many_keys(); /* again, with all keys known */
    struct segment *segment = stop_and_read();
    check_full(segment, calls);
    CHECK_EQUAL(segment->header->dropped_count, 0);
    segment_free(segment);
}

static void *count_many_keys(void *calls)
{
    __atomic_fetch_add((uint64_t *)calls, run_many_keys(), __ATOMIC_RELAXED);
    return NULL;
}

static void a_full_segment_stays_below_16_mib_and_what_has_no_table_is_dropped(void)
{
    enum { THREADS = 3 };
    uint64_t calls = 0;
    pthread_t threads[THREADS];
    start_recorder("model_id");
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, count_many_keys, &calls), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    struct segment *segment = stop_and_read();
    check_full(segment, calls);
    segment_free(segment);
}

static void *run_known_and_new(void *unused)
{
    run_ranges(op_named("key::0"), 3);
    run_ranges(op_named("of_a_late_thread"), 4);
    return unused;
}

static void threads_that_come_when_the_segment_is_full_count_under_other(void)
{
    enum { THREADS = 50 };
    static pthread_t threads[THREADS];
    start_recorder("model_id");
    uint64_t calls = run_many_keys();
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    CHECK(status.folded_count > 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, run_known_and_new, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    struct segment *segment = stop_and_read();
    calls += (uint64_t)THREADS * 7;
    CHECK_EQUAL(segment->header->dropped_count, 0);
    CHECK_EQUAL(segment->header->folded_count, status.folded_count + (uint64_t)THREADS * 7);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, calls);
    segment_free(segment);
}

static void *hold_a_table(void *barrier)
{
    run_ranges(op_named("held"), 1);
    pthread_barrier_wait(barrier); /* all threads have their tables */
    run_ranges(op_named("held"), 9);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void threads_beyond_the_tables_are_dropped_and_counted(void)
{
    enum { THREADS = 520 }; /* a table takes at least two chunks: 511 fit */
    static pthread_t threads[THREADS];
    pthread_barrier_t barrier;
    pthread_attr_t small;
    CHECK_EQUAL(pthread_attr_init(&small), 0);
    CHECK_EQUAL(pthread_attr_setstacksize(&small, 256 << 10), 0);
    CHECK_EQUAL(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    start_recorder("");
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], &small, hold_a_table, &barrier), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    struct segment *segment = stop_and_read();
    CHECK(segment->header->dropped_count > 0);
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples + segment->header->dropped_count,
                10 * THREADS);
    segment_free(segment);
    pthread_barrier_destroy(&barrier);
    pthread_attr_destroy(&small);
}

static void a_file_size_limit_reached_while_recording_only_folds(void)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct rlimit limit = {300000, 300000};
        CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
        start_recorder("model_id");
        uint64_t calls = run_many_keys();
        struct segment *segment = stop_and_read();
        CHECK(segment->size <= 300000);
        check_full(segment, calls);
        segment_free(segment);
        _exit(0);
    }
    CHECK(check_child(child));
}

static void a_file_removed_while_recording_only_folds(void)
{
    opscope_recorder_status status;
    start_recorder("model_id");
    opscope_recorder_read_status(&status);
    CHECK_EQUAL(unlink(status.path), 0);
    (void)run_many_keys();
    opscope_recorder_read_status(&status);
    CHECK(status.folded_count > 0);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
}

int main(void)
{
    make_directory();
    RUN(a_quiet_process_takes_at_most_512_kib_of_disk);
    RUN(a_file_size_limit_reached_while_recording_only_folds);
    RUN(a_full_table_folds_what_is_new_into_other_and_sums_stay_exact);
    RUN(a_full_segment_stays_below_16_mib_and_what_has_no_table_is_dropped);
    RUN(threads_that_come_when_the_segment_is_full_count_under_other);
    RUN(threads_beyond_the_tables_are_dropped_and_counted);
    RUN(a_file_removed_while_recording_only_folds);
    remove_directory();
    return 0;
}
