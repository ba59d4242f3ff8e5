/* tests/native/test_state.c -- the state of a thread: the switch, debug info, local callbacks; and
 * carrying all three to other threads. */
#include <pthread.h>
#include <stdlib.h>

#include "opscope/debug_info.h"
#include "ranges.h"

static void *on_new_thread(void *(*function)(void *), void *arg)
{
    pthread_t thread;
    void *result;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, arg), 0);
    CHECK_EQUAL(pthread_join(thread, &result), 0);
    return result;
}

static void *run_ten(void *unused)
{
    (void)unused;
    run_ranges(op_named("a"), 10);
    return NULL;
}

static void the_switch_silences_global_and_local_callbacks_of_its_thread(void)
{
    struct calls global = {0}, local = {0};
    add_global(counting(&global));
    add_local(counting(&local));
    CHECK(opscope_recording());
    CHECK(opscope_recording_set(false)); /* the previous value */
    CHECK(!opscope_recording() && !opscope_has_callbacks());
    run_ranges(op_named("a"), 5);
    bool inner = opscope_recording_set(true);
    CHECK(!inner && opscope_has_callbacks());
    run_ranges(op_named("a"), 1);
    CHECK(opscope_recording_set(inner));
    run_ranges(op_named("a"), 5);
    CHECK_EQUAL(global.ends, 1);
    CHECK_EQUAL(local.ends, 1);
    on_new_thread(run_ten, NULL); /* its own switch is on, and it has no local callbacks */
    CHECK_EQUAL(global.ends, 11);
    CHECK_EQUAL(local.ends, 1);
    CHECK(!opscope_recording_set(true));
    opscope_clear_callbacks();
}

static void a_range_open_when_the_switch_goes_off_gets_its_end(void)
{
    struct calls calls = {0};
    add_global(counting(&calls));
    opscope_range range;
    opscope_range_open(&range, op_named("a"), NULL);
    opscope_recording_set(false);
    opscope_range_close(&range);
    opscope_recording_set(true);
    CHECK_EQUAL(calls.ends, 1);
    opscope_clear_callbacks();
}

static void a_key_shadows_an_earlier_one_and_the_others_stay_visible(void)
{
    opscope_debug_info_guard a, b, again;
    CHECK(opscope_debug_info_current() == NULL);
    CHECK(opscope_debug_info_get("a") == NULL);
    char value[] = "1";
    CHECK_EQUAL(opscope_debug_info_push("a", value, &a), OPSCOPE_OK);
    value[0] = 'x'; /* copied */
    CHECK_EQUAL(opscope_debug_info_push("b", "2", &b), OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("a", "3", &again), OPSCOPE_OK);
    CHECK_TEXT(opscope_debug_info_get("a"), "3");
    CHECK_TEXT(opscope_debug_info_get("b"), "2");
    CHECK_TEXT(opscope_debug_info_current()->parent->parent->value, "1");
    const opscope_debug_info *outer = b.pushed;
    opscope_debug_info_pop(&again);
    CHECK(opscope_debug_info_current() == outer);
    CHECK_TEXT(opscope_debug_info_get("a"), "1");
    opscope_debug_info_pop(&b);
    opscope_debug_info_pop(&a);
    CHECK(opscope_debug_info_current() == NULL);
}

static void *see_only_b(void *state)
{
    opscope_state *previous;
    CHECK_EQUAL(opscope_state_enter(state, &previous), OPSCOPE_OK);
    CHECK(opscope_debug_info_get("a") == NULL);
    CHECK_TEXT(opscope_debug_info_get("b"), "2");
    opscope_state_leave(previous);
    return NULL;
}

static void a_key_without_a_value_masks_an_earlier_one(void)
{
    opscope_debug_info_guard a, b, mask, again;
    opscope_state *state;
    CHECK_EQUAL(opscope_debug_info_push("a", "1", &a), OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("b", "2", &b), OPSCOPE_OK);
    CHECK_EQUAL(opscope_debug_info_push("a", NULL, &mask), OPSCOPE_OK);
    CHECK(opscope_debug_info_get("a") == NULL);
    CHECK_TEXT(opscope_debug_info_get("b"), "2");
    CHECK_TEXT(opscope_debug_info_current()->key, "a");
    CHECK(opscope_debug_info_current()->value == NULL);
    CHECK_EQUAL(opscope_state_capture(&state), OPSCOPE_OK);
    on_new_thread(see_only_b, state);
    opscope_state_release(state);
    CHECK_EQUAL(opscope_debug_info_push("a", "3", &again), OPSCOPE_OK);
    CHECK_TEXT(opscope_debug_info_get("a"), "3");
    opscope_debug_info_pop(&again);
    CHECK(opscope_debug_info_get("a") == NULL);
    opscope_debug_info_pop(&mask);
    CHECK_TEXT(opscope_debug_info_get("a"), "1");
    opscope_debug_info_pop(&b);
    opscope_debug_info_pop(&a);
}

static void chains_that_take_turns_on_a_thread_stay_whole(void)
{
    const opscope_debug_info *chains[2], *outside;
    opscope_debug_info_guard around, guards[2], inner;
    static const char *const values[2] = {"0", "1"};
    CHECK(opscope_debug_info_hold() == NULL);
    opscope_debug_info_release(NULL);
    CHECK_EQUAL(opscope_debug_info_push("a", "outside", &around), OPSCOPE_OK);
    outside = opscope_debug_info_hold();
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(opscope_debug_info_push("a", values[i], &guards[i]), OPSCOPE_OK);
        chains[i] = opscope_debug_info_hold();
        opscope_debug_info_switch(outside);
        CHECK_TEXT(opscope_debug_info_get("a"), "outside");
    }
    for (int turn = 0; turn < 10; turn++) {
        opscope_debug_info_switch(chains[turn % 2]);
        CHECK_TEXT(opscope_debug_info_get("a"), values[turn % 2]);
        CHECK_EQUAL(opscope_debug_info_push("a", "inner", &inner), OPSCOPE_OK);
        opscope_debug_info_pop(&inner);
        CHECK(opscope_debug_info_current() == chains[turn % 2]);
    }
    for (int i = 0; i < 2; i++) {
        opscope_debug_info_switch(chains[i]);
        opscope_debug_info_release(chains[i]);
        opscope_debug_info_pop(&guards[i]);
        CHECK_TEXT(opscope_debug_info_get("a"), "outside");
    }
    opscope_debug_info_pop(&around);
    opscope_debug_info_switch(NULL);
    CHECK(opscope_debug_info_current() == NULL);
    opscope_debug_info_release(outside);
}

static void bad_keys_are_refused_and_the_longest_is_kept_whole(void)
{
    char *text = malloc(65537);
    CHECK(text != NULL);
    memset(text, 'k', 65536);
    text[65536] = '\0';
    opscope_debug_info_guard guard = {NULL, NULL};
    CHECK_EQUAL(opscope_debug_info_push("", "x", &guard), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_debug_info_push(text, "x", &guard), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(opscope_debug_info_push("x", text, &guard), OPSCOPE_ERR_INVALID);
    CHECK(guard.pushed == NULL && opscope_debug_info_current() == NULL);
    text[65535] = '\0';
    CHECK_EQUAL(opscope_debug_info_push(text, text, &guard), OPSCOPE_OK);
    CHECK_TEXT(opscope_debug_info_get(text), text);
    opscope_debug_info_pop(&guard);
    free(text);
}

static void *see_nothing(void *unused)
{
    (void)unused;
    CHECK(opscope_debug_info_current() == NULL);
    return NULL;
}

static void a_raw_thread_inherits_nothing(void)
{
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_debug_info_push("a", "1", &guard), OPSCOPE_OK);
    on_new_thread(see_nothing, NULL);
    opscope_debug_info_pop(&guard);
}

static void *enter_and_run(void *captured)
{
    const opscope_state *state = captured;
    opscope_state *previous;
    opscope_debug_info_guard own;
    CHECK_EQUAL(opscope_debug_info_push("own", "x", &own), OPSCOPE_OK);
    CHECK_EQUAL(opscope_state_enter(state, &previous), OPSCOPE_OK);
    CHECK_TEXT(opscope_debug_info_get("a"), "1");
    CHECK(opscope_debug_info_get("own") == NULL);
    opscope_debug_info_guard inner;
    CHECK_EQUAL(opscope_debug_info_push("a", "inner", &inner), OPSCOPE_OK);
    run_ranges(op_named("a"), 10);
    opscope_debug_info_pop(&inner);
    CHECK_TEXT(opscope_debug_info_get("a"), "1");
    opscope_state_leave(previous);
    CHECK_TEXT(opscope_debug_info_get("own"), "x");
    opscope_debug_info_pop(&own);
    CHECK(opscope_debug_info_current() == NULL);
    run_ranges(op_named("a"), 10);
    return NULL;
}

static void a_state_carries_debug_info_and_local_callbacks_to_many_threads_and_leaves_no_trace(void)
{
    enum { THREADS = 4 };
    struct calls local = {0};
    pthread_t threads[THREADS];
    opscope_debug_info_guard guard;
    opscope_state *state;
    CHECK_EQUAL(opscope_debug_info_push("a", "1", &guard), OPSCOPE_OK);
    opscope_handle handle = add_local(dropping(&local));
    CHECK_EQUAL(opscope_state_capture(&state), OPSCOPE_OK);
    opscope_debug_info_pop(&guard); /* the state has its own reference */
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    CHECK_EQUAL(local.drops, 0);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, enter_and_run, state), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK_EQUAL(local.starts, 10 * THREADS);
    CHECK_EQUAL(local.ends, 10 * THREADS);
    opscope_state_release(state);
    CHECK_EQUAL(local.drops, 1);
}

static void a_state_carries_the_switch(void)
{
    struct calls calls = {0};
    opscope_state *off, *before;
    add_global(counting(&calls));
    opscope_recording_set(false);
    CHECK_EQUAL(opscope_state_capture(&off), OPSCOPE_OK);
    opscope_recording_set(true);
    CHECK_EQUAL(opscope_state_enter(off, &before), OPSCOPE_OK);
    run_ranges(op_named("a"), 5);
    opscope_state_leave(before);
    run_ranges(op_named("a"), 3);
    CHECK_EQUAL(calls.ends, 3);
    opscope_state_release(off);
    opscope_clear_callbacks();
}

static void states_nest(void)
{
    opscope_debug_info_guard guard;
    opscope_state *states[3], *before[3];
    static const char *const values[3] = {"0", "1", "2"};
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(opscope_debug_info_push("a", values[i], &guard), OPSCOPE_OK);
        CHECK_EQUAL(opscope_state_capture(&states[i]), OPSCOPE_OK);
        opscope_debug_info_pop(&guard);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(opscope_state_enter(states[i], &before[i]), OPSCOPE_OK);
        opscope_state_release(states[i]); /* entered: it holds its own references */
        CHECK_TEXT(opscope_debug_info_get("a"), values[i]);
    }
    for (int i = 2; i >= 0; i--) {
        CHECK_TEXT(opscope_debug_info_get("a"), values[i]);
        opscope_state_leave(before[i]);
    }
    CHECK(opscope_debug_info_current() == NULL);
}

static void *do_not_find(void *handle)
{
    CHECK_EQUAL(opscope_remove_callback(*(opscope_handle *)handle, false), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_disable_callback(*(opscope_handle *)handle), OPSCOPE_ERR_NOT_FOUND);
    return NULL;
}

static void a_local_callback_is_unknown_to_other_threads(void)
{
    struct calls calls = {0};
    opscope_handle handle = add_local(dropping(&calls));
    on_new_thread(do_not_find, &handle);
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(calls.ends, 1);
    opscope_clear_callbacks();
    CHECK_EQUAL(calls.drops, 0); /* this thread has not refreshed its snapshot yet */
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(calls.drops, 1);
}

static void *add_and_end(void *calls)
{
    add_local(dropping(calls));
    run_ranges(op_named("a"), 1);
    return NULL;
}

static void local_callbacks_are_dropped_when_their_thread_ends(void)
{
    struct calls calls = {0};
    on_new_thread(add_and_end, &calls);
    CHECK_EQUAL(calls.ends, 1);
    CHECK_EQUAL(calls.drops, 1);
}

static void debug_info_and_local_callbacks_are_in_a_forked_child(void)
{
    struct calls calls = {0};
    opscope_debug_info_guard guard;
    CHECK_EQUAL(opscope_debug_info_push("a", "1", &guard), OPSCOPE_OK);
    add_local(counting(&calls));
    pid_t child = fork();
    if (child == 0) {
        CHECK_TEXT(opscope_debug_info_get("a"), "1");
        run_ranges(op_named("a"), 3);
        CHECK_EQUAL(calls.ends, 3);
        opscope_debug_info_pop(&guard);
        CHECK(opscope_debug_info_current() == NULL);
        _exit(0);
    }
    CHECK(check_child(child));
    CHECK_EQUAL(calls.ends, 0);
    opscope_debug_info_pop(&guard);
    opscope_clear_callbacks();
}

static void *see_inherited(void *unused)
{
    (void)unused;
    CHECK_TEXT(opscope_debug_info_get("job"), "a=b");
    CHECK_TEXT(opscope_debug_info_get("model_id"), "second");
    CHECK_TEXT(opscope_debug_info_get("empty"), "");
    CHECK_TEXT(opscope_debug_info_current()->key, "last");
    int links = 0;
    for (const opscope_debug_info *link = opscope_debug_info_current(); link; link = link->parent) {
        links++;
    }
    CHECK_EQUAL(links, 5);
    return NULL;
}

static const char *program;

/* Runs the program again, by exec: argv[1] is "inherited". */
static void labels_are_inherited_over_exec_by_all_threads(void)
{
    pid_t child = fork();
    if (child == 0) {
        setenv("OPSCOPE_DEBUG_INFO",
               "model_id=first\njob=a=b\n=nokey\nnothing\n\nempty=\nmodel_id=second\nlast=1\n", 1);
        execl(program, program, "inherited", (char *)NULL);
        _exit(1);
    }
    CHECK(check_child(child));
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "inherited") == 0) {
        see_inherited(NULL);
        on_new_thread(see_inherited, NULL);
        return 0;
    }
    program = argv[0];
    RUN(the_switch_silences_global_and_local_callbacks_of_its_thread);
    RUN(a_range_open_when_the_switch_goes_off_gets_its_end);
    RUN(a_key_shadows_an_earlier_one_and_the_others_stay_visible);
    RUN(a_key_without_a_value_masks_an_earlier_one);
    RUN(chains_that_take_turns_on_a_thread_stay_whole);
    RUN(bad_keys_are_refused_and_the_longest_is_kept_whole);
    RUN(a_raw_thread_inherits_nothing);
    RUN(a_state_carries_debug_info_and_local_callbacks_to_many_threads_and_leaves_no_trace);
    RUN(a_state_carries_the_switch);
    RUN(states_nest);
    RUN(a_local_callback_is_unknown_to_other_threads);
    RUN(local_callbacks_are_dropped_when_their_thread_ends);
    RUN(debug_info_and_local_callbacks_are_in_a_forked_child);
    RUN(labels_are_inherited_over_exec_by_all_threads);
    return 0;
}
