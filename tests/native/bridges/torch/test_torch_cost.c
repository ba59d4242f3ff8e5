/* tests/native/bridges/torch/test_torch_cost.c -- the bridge measures the extra cost of PyTorch's
 * ranges during the trial, with a fake PyTorch: it observes only its own thread, leaves nothing
 * behind, and the cost is in the dictionary whenever the recorder starts. */
#include <sched.h>
#include <sys/wait.h>

#include "attached.h"
#include "ranges.h"
#include "read_segment.h"

enum { MOST_ROUNDS = 1000 };

static bool is_over; /* store_release by main, load_acquire by the thread */

static void *work(void *count)
{
    uint64_t *ops = count;
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        run_op("aten::elsewhere", "");
        __atomic_store_n(ops, *ops + 1, __ATOMIC_RELAXED);
        sched_yield();
    }
    return NULL;
}

static int run_rounds(int most)
{
    int rounds = 0;
    while (rounds < most && opscope_torch_cost_round()) {
        for (int i = 0; i < OPSCOPE_TORCH_COST_CALLS; i++) {
            run_op("aten::empty", "memory_format");
        }
        rounds++;
    }
    return rounds;
}

static void begin_trial(void)
{
    CHECK(opscope_torch_trial_begin("") == NULL);
    run_trial();
}

static uint32_t extra_of(const struct segment *segment, const char *name)
{
    const opscope_entry *entry;
    for (uint32_t i = 0; (entry = segment_entry(segment, OPSCOPE_ENTRY_OP, i)) != NULL; i++) {
        if (strcmp(entry_text(entry), name) == 0) {
            return entry->extra_cost_ps;
        }
    }
    return 0;
}

/* In a child, because the first measurement in a process is final. */
static void in_a_child(void (*test)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        test();
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void there_are_no_rounds_without_a_sound_trial(void)
{
    CHECK(!opscope_torch_cost_round());
    fake_fault = FAKE_FORGETS_ENDS;
    begin_trial();
    CHECK(!opscope_torch_cost_round());
    CHECK_EQUAL(fake_callback_count(), 0);
    CHECK_TEXT(opscope_torch_trial_end(), "starts and ends of ranges do not match");
    fake_fault = FAKE_SOUND;
    CHECK(!opscope_torch_cost_round());
}

static int most_rounds;

static void leave_off(void)
{
    begin_trial();
    CHECK(run_rounds(most_rounds) <= most_rounds);
    CHECK(opscope_torch_trial_end() == NULL);
    CHECK_EQUAL(fake_callback_count(), 0);
    start_recorder("");
    run_op("aten::add", "Tensor");
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum_of(segment, "aten::add").samples, 1);
    CHECK(extra_of(segment, "aten::add") > 0); /* the typical cost, or the one measured so far */
    segment_free(segment);
}

static void rounds_left_off_leave_all_as_it_was(void)
{
    for (most_rounds = 0; most_rounds < 20; most_rounds++) {
        in_a_child(leave_off);
    }
}

static void measure(void)
{
    uint64_t ops = 0;
    pthread_t thread;
    struct calls calls = {0};
    start_recorder("");
    opscope_handle handle = add_global(counting(&calls));
    CHECK_EQUAL(pthread_create(&thread, NULL, work, &ops), 0);
    while (__atomic_load_n(&ops, __ATOMIC_RELAXED) < 100) {
        sched_yield();
    }
    begin_trial();
    const int rounds = run_rounds(MOST_ROUNDS);
    CHECK(rounds > 0 && rounds < MOST_ROUNDS);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calls.starts, 0); /* neither the trial's operators nor those of other threads */
    CHECK(opscope_torch_trial_end() == NULL);
    CHECK_EQUAL(fake_callback_count(), 1);
    run_op("aten::empty", "memory_format");
    run_op("aten::add", "Tensor");
    CHECK_EQUAL(calls.starts, 2);
    (void)opscope_remove_callback(handle, true);
    struct segment *segment = stop_and_read();
    CHECK_EQUAL(segment_sum(segment, 0, ANY, ANY).samples, 2);
    const uint32_t extra = extra_of(segment, "aten::empty");
    CHECK(extra > 0 && extra < 20000000);
    CHECK_EQUAL(extra_of(segment, "aten::add"), extra);
    segment_free(segment);

    opscope_torch_detach(); /* once is enough; a recorder that starts later has the cost too */
    begin_trial();
    CHECK_EQUAL(run_rounds(MOST_ROUNDS), 0);
    CHECK(opscope_torch_trial_end() == NULL);
    start_recorder("");
    run_op("aten::add", "Tensor");
    run_op("aten::mul", "Tensor");
    segment = stop_and_read();
    CHECK_EQUAL(extra_of(segment, "aten::add"), extra);
    CHECK_EQUAL(extra_of(segment, "aten::mul"), extra);
    segment_free(segment);
}

static void what_a_range_costs_is_in_the_dictionary_whenever_the_recorder_starts(void)
{
    in_a_child(measure);
}

int main(void)
{
    make_directory();
    RUN(there_are_no_rounds_without_a_sound_trial);
    RUN(rounds_left_off_leave_all_as_it_was);
    RUN(what_a_range_costs_is_in_the_dictionary_whenever_the_recorder_starts);
    remove_directory();
    return 0;
}
