/* tests/native/test_callbacks.c -- which callbacks run around a range, in which order and with
 * which arguments, while callbacks are added and removed. One thread; other threads are in
 * test_removal.c. */
#include "journal.h"

static void global_callbacks_come_first_each_kind_in_order_of_registration(void)
{
    begin();
    add_local(saying("L1"));
    add_global(saying("G1"));
    add_local(saying("L2"));
    add_global(saying("G2"));
    run_ranges(op_named("a"), 1);
    CHECK_TEXT(journal, "sG1 sG2 sL1 sL2 eG1 eG2 eL1 eL2 ");
}

static void one_of_two_is_called_after_the_other_left(void)
{
    begin();
    opscope_handle first = add_global(saying("1"));
    add_global(saying("2"));
    CHECK_EQUAL(opscope_remove_callback(first, false), OPSCOPE_OK);
    run_ranges(op_named("a"), 1);
    CHECK_TEXT(journal, "s2 e2 ");
}

static void a_removed_callback_still_gets_the_end_of_an_open_range(void)
{
    begin();
    struct calls calls = {0};
    opscope_handle handle = add_global(dropping(&calls));
    opscope_range range;
    opscope_range_open(&range, op_named("a"), NULL);
    CHECK_EQUAL(opscope_remove_callback(handle, false), OPSCOPE_OK);
    run_ranges(op_named("a"), 3);
    CHECK_EQUAL(calls.starts, 1);
    CHECK_EQUAL(calls.ends, 0);
    CHECK_EQUAL(calls.drops, 0);
    opscope_range_close(&range);
    CHECK_EQUAL(calls.ends, 1);
    CHECK_EQUAL(calls.drops, 1);
}

static void an_added_callback_gets_nothing_for_open_ranges(void)
{
    begin();
    opscope_range unseen, seen;
    opscope_range_open(&unseen, op_named("a"), NULL);
    add_global(saying("1"));
    opscope_range_open(&seen, op_named("a"), NULL);
    add_global(saying("2"));
    opscope_range_close(&seen);
    opscope_range_close(&unseen);
    CHECK_TEXT(journal, "s1 e1 ");
}

static opscope_handle own_handle;

static int remove_itself(const opscope_range *fn, void *user, void **context)
{
    CHECK_EQUAL(opscope_remove_callback(own_handle, false), OPSCOPE_OK);
    return say_start(fn, user, context);
}

static void a_callback_may_remove_itself_and_gets_its_end(void)
{
    begin();
    opscope_callback callback = saying("1");
    callback.start = remove_itself;
    own_handle = add_global(callback);
    add_global(saying("2"));
    run_ranges(op_named("a"), 2);
    CHECK_TEXT(journal, "s1 s2 e1 e2 s2 e2 ");
}

static int add_another(const opscope_range *fn, void *user, void **context)
{
    add_global(saying("new"));
    return say_start(fn, user, context);
}

static void a_callback_may_add_another_which_begins_with_the_next_range(void)
{
    begin();
    opscope_callback callback = saying("1");
    callback.start = add_another;
    opscope_handle handle = add_local(callback);
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(opscope_remove_callback(handle, false), OPSCOPE_OK);
    run_ranges(op_named("a"), 1);
    CHECK_TEXT(journal, "s1 e1 snew enew ");
}

static int clear_all(const opscope_range *fn, void *user, void *context)
{
    opscope_clear_callbacks();
    return say_end(fn, user, context);
}

static void an_end_may_clear_all_callbacks_and_the_other_ends_still_run(void)
{
    begin();
    opscope_callback callback = saying("1");
    callback.end = clear_all;
    add_global(callback);
    add_global(saying("2"));
    add_local(saying("3"));
    run_ranges(op_named("a"), 2);
    CHECK_TEXT(journal, "s1 s2 s3 e1 e2 e3 ");
    CHECK(!opscope_has_callbacks());
}

static void handles_are_never_used_again_and_shared_by_both_kinds(void)
{
    begin();
    opscope_handle before = add_global(saying("1"));
    CHECK_EQUAL(opscope_remove_callback(before, false), OPSCOPE_OK);
    opscope_handle local = add_local(saying("2"));
    opscope_handle global = add_global(saying("3"));
    CHECK_EQUAL(local, before + 1);
    CHECK_EQUAL(global, before + 2);
}

static void an_unknown_handle_is_not_found(void)
{
    begin();
    opscope_handle gone = add_global(saying("1"));
    CHECK_EQUAL(opscope_remove_callback(gone, true), OPSCOPE_OK);
    CHECK_EQUAL(opscope_remove_callback(gone, true), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_disable_callback(gone), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_enable_callback(0), OPSCOPE_ERR_NOT_FOUND);
    CHECK_EQUAL(opscope_enable_callback(UINT64_MAX), OPSCOPE_ERR_NOT_FOUND);
}

static void disabling_and_enabling_twice_is_as_once(void)
{
    begin();
    opscope_handle global = add_global(saying("G"));
    opscope_handle local = add_local(saying("L"));
    CHECK(opscope_has_callbacks());
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(opscope_disable_callback(global), OPSCOPE_OK);
        CHECK_EQUAL(opscope_disable_callback(local), OPSCOPE_OK);
        run_ranges(op_named("a"), 1);
        CHECK(!opscope_has_callbacks());
    }
    CHECK_TEXT(journal, "");
    for (int i = 0; i < 2; i++) {
        CHECK_EQUAL(opscope_enable_callback(local), OPSCOPE_OK);
        CHECK_EQUAL(opscope_enable_callback(global), OPSCOPE_OK);
    }
    run_ranges(op_named("a"), 1);
    CHECK_TEXT(journal, "sG sL eG eL ");
}

static void a_callback_disabled_while_a_range_is_open_gets_its_end(void)
{
    begin();
    opscope_handle handle = add_global(saying("1"));
    opscope_range range;
    opscope_range_open(&range, op_named("a"), NULL);
    CHECK_EQUAL(opscope_disable_callback(handle), OPSCOPE_OK);
    opscope_range_close(&range);
    CHECK_TEXT(journal, "s1 e1 ");
}

static void ranges_close_in_any_order(void)
{
    begin();
    struct calls calls = {0};
    add_global(counting(&calls));
    opscope_range *open[8];
    for (int i = 0; i < 8; i++) {
        open[i] = opscope_range_begin(op_named("a"), NULL);
        CHECK(open[i] != NULL);
        add_local(saying("x"));
    }
    static const int order[8] = {3, 0, 7, 1, 6, 2, 4, 5};
    for (int i = 0; i < 8; i++) {
        opscope_range_end(open[order[i]]);
    }
    CHECK_EQUAL(calls.starts, 8);
    CHECK_EQUAL(calls.ends, 8);
}

int main(void)
{
    opscope_handle first = add_global(saying("1"));
    CHECK_EQUAL(first, 1);
    RUN(global_callbacks_come_first_each_kind_in_order_of_registration);
    RUN(one_of_two_is_called_after_the_other_left);
    RUN(a_removed_callback_still_gets_the_end_of_an_open_range);
    RUN(an_added_callback_gets_nothing_for_open_ranges);
    RUN(a_callback_may_remove_itself_and_gets_its_end);
    RUN(a_callback_may_add_another_which_begins_with_the_next_range);
    RUN(an_end_may_clear_all_callbacks_and_the_other_ends_still_run);
    RUN(handles_are_never_used_again_and_shared_by_both_kinds);
    RUN(an_unknown_handle_is_not_found);
    RUN(disabling_and_enabling_twice_is_as_once);
    RUN(a_callback_disabled_while_a_range_is_open_gets_its_end);
    RUN(ranges_close_in_any_order);
    opscope_clear_callbacks();
    return 0;
}
