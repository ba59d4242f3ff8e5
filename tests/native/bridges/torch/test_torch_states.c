/* tests/native/bridges/torch/test_torch_states.c -- a thread's state is set only if it is another
 * one, and PyTorch's own function stays if its state is not as known. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "attached.h"

static char header[] = "/tmp/opscope-record-function-XXXXXX";

static void write_header(const char *fields)
{
    FILE *file = fopen(header, "w");
    CHECK(file != NULL);
    (void)fprintf(file, "struct TORCH_API RecordFunctionTLS {\n  // Which.\n%s};\n", fields);
    CHECK_EQUAL(fclose(file), 0);
}

static const char known_fields[] = "  RecordFunctionCallbacks sorted_tls_callbacks_;\n"
                                   "  bool tls_record_function_enabled_ = true;\n";

/* Why PyTorch's function stays; "": it does not. A header that declares nothing else keeps the
 * bridge from using fields of ranges, which these tests do not need. */
static const char *attach_with(const char *path)
{
    const char *reason = opscope_torch_trial_begin(path);
    CHECK_TEXT(reason != NULL ? reason : "", "");
    run_trial();
    reason = opscope_torch_trial_end();
    CHECK_TEXT(reason != NULL ? reason : "", "");
    reason = opscope_torch_fault(OPSCOPE_TORCH_STATES);
    return reason != NULL ? reason : "";
}

/* Whether a node that sets this state reaches PyTorch's function. */
static bool is_set(const struct fake_state *state)
{
    const uint64_t before = fake_state_sets;
    fake_enter_node(state);
    return fake_state_sets != before;
}

static int stays_with(enum fake_fault fault)
{
    fake_fault = fault;
    const bool stays =
        strcmp(attach_with(header), "PyTorch's state of a thread has unexpected fields") == 0 &&
        is_set(fake_state());
    return stays ? 0 : 1;
}

/* What is found is kept, so each case has a process of its own. */
static void check_in_child(int (*check)(enum fake_fault fault), enum fake_fault fault)
{
    const pid_t pid = fork();
    if (pid == 0) {
        _exit(check(fault));
    }
    CHECK(check_child(pid));
}

static int stays_without_declaration(enum fake_fault fault)
{
    (void)fault;
    const char *reason = attach_with("/nowhere/record_function.h");
    return strcmp(reason, "no record_function.h declares RecordFunctionTLS as expected") == 0 &&
                   is_set(fake_state())
               ? 0
               : 1;
}

static void pytorch_s_function_stays_if_the_state_is_another(void)
{
    check_in_child(stays_with, FAKE_STATE_HAS_MORE);
    check_in_child(stays_with, FAKE_STATE_ENABLED_MOVED);
    check_in_child(stays_without_declaration, FAKE_SOUND);
    write_header("  RecordFunctionCallbacks sorted_tls_callbacks_;\n"
                 "  bool tls_record_function_enabled_ = true;\n  bool more_ = false;\n");
    check_in_child(stays_without_declaration, FAKE_SOUND);
    write_header(known_fields);
}

static int stays_on_a_thread_with_callbacks(enum fake_fault fault)
{
    (void)fault;
    static const char callbacks[1];
    fake_state()->first = callbacks;
    fake_state()->last = callbacks + 1;
    return strcmp(attach_with(header), "this thread has callbacks of its own") == 0 &&
                   is_set(fake_state())
               ? 0
               : 1;
}

static void the_trial_leaves_a_thread_s_own_callbacks_alone(void)
{
    check_in_child(stays_on_a_thread_with_callbacks, FAKE_SOUND);
}

static void only_another_state_is_set(void)
{
    CHECK_TEXT(attach_with(header), "");
    CHECK(fake_state()->is_enabled);
    struct fake_state state = *fake_state();
    CHECK(!is_set(&state));
    CHECK(!is_set(fake_state()));
    state.is_enabled = false;
    CHECK(is_set(&state));
    CHECK(!fake_state()->is_enabled);
    CHECK(!is_set(&state));
    state.is_enabled = true;
    CHECK(is_set(&state));
    const char callbacks[2];
    state.first = callbacks;
    state.last = callbacks + 1;
    CHECK(is_set(&state));
    CHECK(fake_state()->first == callbacks);
    CHECK(is_set(&state)); /* they may be others in the same memory */
    state.last = state.first;
    CHECK(is_set(&state));
    CHECK(!is_set(&state));
}

static void a_detached_bridge_changes_nothing(void)
{
    CHECK(!is_set(fake_state()));
    opscope_torch_detach();
    CHECK(is_set(fake_state()));
    CHECK_TEXT(attach_with(header), "");
    CHECK(!is_set(fake_state()));
}

int main(void)
{
    const int file = mkstemp(header);
    CHECK(file >= 0);
    (void)close(file);
    write_header(known_fields);
    fake_enter_node(fake_state()); /* the loader sets the slot, if not before */
    RUN(pytorch_s_function_stays_if_the_state_is_another);
    RUN(the_trial_leaves_a_thread_s_own_callbacks_alone);
    RUN(only_another_state_is_set);
    RUN(a_detached_bridge_changes_nothing);
    (void)unlink(header);
    return 0;
}
