/* tests/native/test_recorder_life.c -- starting, stopping and changing the recorder; directories
 * and limits that make a start fail; notes about the process. */
#include <math.h>
#include <sys/resource.h>

#include "opscope/usage.h"
#include "ranges.h"
#include "read_segment.h"

static int start_with(const char *where, const char *label_keys, double prob, uint64_t window_ns,
                      uint64_t period_ns)
{
    opscope_recorder_options options = {.directory = where,
                                        .label_keys = label_keys,
                                        .sampling_prob = prob,
                                        .window_ns = window_ns,
                                        .period_ns = period_ns};
    return opscope_recorder_start(&options);
}

static bool is_running(void)
{
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    CHECK(status.running == (status.path[0] != '\0'));
    return status.running;
}

static void nothing_runs_before_the_start(void)
{
    CHECK(!is_running());
    CHECK_EQUAL(opscope_recorder_stop(false), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_recorder_note("key", "value"), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 0, 0), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_recorder_window_begin(1.0), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_recorder_window_end(), OPSCOPE_ERR_NOT_FOUND);
}

static void a_second_start_is_busy_and_changes_nothing(void)
{
    start_recorder("");
    CHECK_EQUAL(start_with(directory, "", 0.5, 0, 0), OPSCOPE_ERR_BUSY);
    run_ranges(op_named("a"), 10);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 10);
    segment_free(segment);
}

static void a_stopped_recorder_counts_no_more_and_a_new_one_from_zero(void)
{
    char path[512];
    for (int i = 0; i < 5; i++) {
        start_recorder("");
        run_ranges(op_named("a"), 10);
        struct segment *segment = stop_and_read();
        run_ranges(op_named("a"), 1000);
        CHECK_EQUAL(segment_sum_of(segment, "a").samples, 10);
        segment_free(segment);
        CHECK_EQUAL(list_directory(path, sizeof path), 1);
        segment = segment_read(path);
        CHECK_EQUAL(segment_sum_of(segment, "a").samples, 10);
        segment_free(segment);
    }
    start_recorder("");
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    CHECK_EQUAL(list_directory(path, sizeof path), 0);
}

static void ranges_open_at_the_stop_and_at_a_new_start_count_in_neither(void)
{
    start_recorder("");
    opscope_range outer, inner, last;
    opscope_range_open(&outer, op_named("outer"), NULL);
    opscope_range_open(&inner, op_named("inner"), NULL);
    opscope_range_open(&last, op_named("last"), NULL);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 0);
    segment_free(segment);
    opscope_range_close(&last); /* without a recorder */
    start_recorder("");
    opscope_range_close(&inner); /* before this thread's first range in the new one */
    run_ranges(op_named("a"), 3);
    opscope_range_close(&outer);
    run_ranges(op_named("a"), 4);
    segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 7);
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 7);
    segment_free(segment);
}

static void an_async_range_open_over_a_restart_is_in_neither(void)
{
    opscope_range_info info = {.is_async = true};
    start_recorder("");
    opscope_range *range = opscope_range_begin(op_named("a"), &info);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    start_recorder("");
    opscope_range_end(range);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 0);
    segment_free(segment);
}

static void settings_change_while_it_runs(void)
{
    start_recorder("");
    run_ranges(op_named("a"), 10);
    CHECK_EQUAL(opscope_recorder_set_sampling(0.0, 0, 0), OPSCOPE_OK);
    run_ranges(op_named("a"), 1000);
    CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 0, 0), OPSCOPE_OK);
    opscope_range range;
    opscope_range_open(&range, op_named("across"), NULL);
    CHECK_EQUAL(opscope_recorder_set_sampling(0.0, 0, 0), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_set_sampling(1.0, 0, 0), OPSCOPE_OK);
    run_ranges(op_named("a"), 5);
    opscope_range_close(&range);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 15);
    CHECK_EQUAL(segment_sum_of(segment, "across").samples, 1);
    CHECK_EQUAL(segment_sum_of(segment, "across").whole_ticks, 0);
    segment_free(segment);
}

static void scopes_restrict_what_is_recorded(void)
{
    empty_directory();
    opscope_recorder_options options = {
        .directory = directory, .sampling_prob = 1.0, .scopes = 1u << OPSCOPE_USER_SCOPE};
    CHECK_EQUAL(opscope_recorder_start(&options), OPSCOPE_OK);
    run_ranges(op_of("function", OPSCOPE_FUNCTION, OPSCOPE_OTHER), 10);
    run_ranges(op_of("user", OPSCOPE_USER_SCOPE, OPSCOPE_OTHER), 20);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 20);
    segment_free(segment);
}

static void bad_settings_are_refused_and_what_runs_goes_on(void)
{
    static const struct {
        double prob;
        uint64_t window_ns, period_ns;
    } bad[] = {{-0.1, 0, 0},    {1.1, 0, 0},   {(double)NAN, 0, 0},  {1e-13, 0, 0},
               {1.0, 100, 100}, {1.0, 100, 0}, {1.0, 1, UINT64_MAX}, {1.0, 1, 2000000000}};
    char long_directory[400], long_keys[400];
    memset(long_directory, 'x', sizeof long_directory);
    long_directory[0] = '/';
    long_directory[sizeof long_directory - 1] = '\0';
    memset(long_keys, 'k', sizeof long_keys);
    long_keys[sizeof long_keys - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQUAL(start_with(directory, "", bad[i].prob, bad[i].window_ns, bad[i].period_ns),
                    OPSCOPE_ERR_INVALID);
    }
    CHECK_EQUAL(start_with(NULL, "", 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_with("", "", 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_with("relative", "", 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_with(long_directory, "", 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_with(directory, long_keys, 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_with(directory, "a,b,c", 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(start_with(directory, ",a", 1, 0, 0), OPSCOPE_ERR_INVALID);
    CHECK(!is_running());
    start_recorder("");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQUAL(opscope_recorder_set_sampling(bad[i].prob, bad[i].window_ns, bad[i].period_ns),
                    OPSCOPE_ERR_INVALID);
    }
    run_ranges(op_named("a"), 10);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "a").samples, 10);
    segment_free(segment);
}

static void the_directory_is_made_for_this_user_alone(void)
{
    char made[128];
    struct stat info;
    snprintf(made, sizeof made, "%s/made", directory);
    CHECK_EQUAL(start_with(made, "", 1, 0, 0), OPSCOPE_OK);
    CHECK_EQUAL(stat(made, &info), 0);
    CHECK_EQUAL(info.st_mode & 07777, 0700);
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    CHECK_EQUAL(rmdir(made), 0);
}

/* Runs `test` in a child, so that its changes to the process stay there. */
static void in_child(void (*test)(void))
{
    empty_directory();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test();
        _exit(0);
    }
    CHECK(check_child(child));
}

static void start_fails_and_the_program_goes_on(int status)
{
    struct calls calls = {0};
    char path[512];
    add_global(counting(&calls));
    CHECK_EQUAL(start_with(directory, "", 1, 0, 0), status);
    CHECK(!is_running());
    run_ranges(op_named("a"), 10);
    CHECK_EQUAL(calls.ends, 10);
    opscope_clear_callbacks();
    CHECK(!opscope_has_callbacks());
    if (access(directory, R_OK) == 0) {
        CHECK_EQUAL(list_directory(path, sizeof path), 0);
    }
}

static void with_little_file_size(void)
{
    struct rlimit limit = {100000, 100000};
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    start_fails_and_the_program_goes_on(OPSCOPE_ERR_NO_SPACE);
}

static void a_file_size_limit_is_no_space_and_no_signal(void)
{
    in_child(with_little_file_size);
}

static void as_another_user(void)
{
    if (getuid() == 0) {
        CHECK_EQUAL(setuid(65534), 0);
    } else {
        strcpy(directory, "/"); /* root owns it */
    }
    start_fails_and_the_program_goes_on(OPSCOPE_ERR_PERMISSION);
}

static void a_directory_of_somebody_else_is_refused(void)
{
    in_child(as_another_user);
}

static void a_directory_that_others_may_write_is_refused(void)
{
    empty_directory();
    CHECK_EQUAL(chmod(directory, 0777), 0);
    start_fails_and_the_program_goes_on(OPSCOPE_ERR_PERMISSION);
    CHECK_EQUAL(chmod(directory, 0700), 0);
}

static void a_link_in_place_of_the_directory_is_refused(void)
{
    char link[128];
    snprintf(link, sizeof link, "%s/link", directory);
    CHECK_EQUAL(symlink(directory, link), 0);
    CHECK(start_with(link, "", 1, 0, 0) < 0);
    CHECK_EQUAL(unlink(link), 0);
    CHECK(!is_running());
}

static void a_file_in_place_of_the_directory_and_a_missing_parent_are_refused(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/file", directory);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0);
    close(fd);
    CHECK(start_with(path, "", 1, 0, 0) < 0);
    CHECK_EQUAL(unlink(path), 0);
    snprintf(path, sizeof path, "%s/a/b", directory);
    CHECK(start_with(path, "", 1, 0, 0) < 0);
    CHECK(!is_running());
}

static void with_all_callbacks_taken(void)
{
    struct calls calls = {0};
    char path[512];
    for (int i = 0; i < 64; i++) {
        add_global(counting(&calls));
    }
    CHECK_EQUAL(start_with(directory, "", 1, 0, 0), OPSCOPE_ERR_FULL);
    CHECK(!is_running());
    CHECK_EQUAL(list_directory(path, sizeof path), 0);
}

static void no_callback_left_is_an_error_and_leaves_no_file(void)
{
    in_child(with_all_callbacks_taken);
}

static void the_last_value_of_a_note_holds_also_in_the_next_segment(void)
{
    start_recorder("");
    CHECK_EQUAL(opscope_recorder_note("bridge", "waiting"), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_note("program", "train.py"), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_note("bridge", "attached"), OPSCOPE_OK);
    CHECK_EQUAL(opscope_recorder_note("", "x"), OPSCOPE_ERR_INVALID);
    struct segment *segment = stop_and_read();
    CHECK_TEXT(entry_text(segment_entry(segment, OPSCOPE_ENTRY_NOTE, 3)) + sizeof "bridge",
               "attached");
    CHECK_EQUAL(segment_entry_count(segment, OPSCOPE_ENTRY_NOTE),
                4); /* `labels` is the recorder's */
    segment_free(segment);
    start_recorder("");
    segment = stop_and_read();
    CHECK_EQUAL(segment_entry_count(segment, OPSCOPE_ENTRY_NOTE), 3);
    CHECK(segment_find(segment, OPSCOPE_ENTRY_NOTE, "bridge\0attached", 16) != NULL);
    segment_free(segment);
}

static void api_usage_is_in_the_segment_once_whenever_it_was_said(void)
{
    opscope_log_api_usage_once("early");
    start_recorder("");
    opscope_log_api_usage_once("late");
    opscope_log_api_usage_once("late");
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_entry_count(segment, OPSCOPE_ENTRY_USAGE), 2);
    CHECK_TEXT(entry_text(segment_entry(segment, OPSCOPE_ENTRY_USAGE, 0)), "early");
    CHECK_TEXT(entry_text(segment_entry(segment, OPSCOPE_ENTRY_USAGE, 1)), "late");
    segment_free(segment);
}

static void the_status_says_what_there_is(void)
{
    start_recorder("");
    opscope_recorder_status status;
    opscope_recorder_read_status(&status);
    CHECK(status.running && status.in_window && status.record_cost_ps > 0);
    CHECK(strncmp(status.path, directory, strlen(directory)) == 0);
    CHECK_EQUAL(opscope_recorder_set_sampling(0.0, 0, 0), OPSCOPE_OK);
    opscope_recorder_read_status(&status);
    CHECK(status.in_window); /* windows are off */
    CHECK_EQUAL(opscope_recorder_stop(true), OPSCOPE_OK);
    opscope_recorder_read_status(&status);
    CHECK(!status.running && !status.in_window);
}

int main(void)
{
    make_directory();
    RUN(nothing_runs_before_the_start);
    RUN(a_second_start_is_busy_and_changes_nothing);
    RUN(a_stopped_recorder_counts_no_more_and_a_new_one_from_zero);
    RUN(ranges_open_at_the_stop_and_at_a_new_start_count_in_neither);
    RUN(an_async_range_open_over_a_restart_is_in_neither);
    RUN(settings_change_while_it_runs);
    RUN(scopes_restrict_what_is_recorded);
    RUN(bad_settings_are_refused_and_what_runs_goes_on);
    RUN(the_directory_is_made_for_this_user_alone);
    RUN(a_file_size_limit_is_no_space_and_no_signal);
    RUN(a_directory_of_somebody_else_is_refused);
    RUN(a_directory_that_others_may_write_is_refused);
    RUN(a_link_in_place_of_the_directory_is_refused);
    RUN(a_file_in_place_of_the_directory_and_a_missing_parent_are_refused);
    RUN(no_callback_left_is_an_error_and_leaves_no_file);
    RUN(the_last_value_of_a_note_holds_also_in_the_next_segment);
    RUN(api_usage_is_in_the_segment_once_whenever_it_was_said);
    RUN(the_status_says_what_there_is);
    remove_directory();
    return 0;
}
