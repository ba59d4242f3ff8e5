/* tests/native/test_callbacks.c -- who is called around a range, in which order, with what, while
 * callbacks come and go. One thread; other threads are in test_removal.c. */
#include <math.h>

#include "ranges.h"

/* What happened, in order: "s1 e1 " for start and end of callback 1. */
static char journal[4096];

static void begin(void)
{
    opscope_clear_callbacks();
    journal[0] = '\0';
}

static void say(char what, const void *user)
{
    size_t length = strlen(journal);
    snprintf(journal + length, sizeof journal - length, "%c%s ", what, (const char *)user);
}

static int say_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    say('s', user);
    *context = user;
    return OPSCOPE_OK;
}

static int say_end(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    CHECK(context == user);
    say('e', user);
    return OPSCOPE_OK;
}

static opscope_callback saying(const char *name)
{
    return (opscope_callback){.start = say_start,
                              .end = say_end,
                              .user = (void *)(uintptr_t)name,
                              .sampling_prob = 1.0};
}

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
    opscope_handle handle = add_global(counting(&calls));
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

static int fail_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    say('s', user);
    *context = user;
    return OPSCOPE_ERR_CALLBACK;
}

static int fail_end(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    CHECK(context == NULL);
    say('e', user);
    return OPSCOPE_ERR_CALLBACK;
}

static void a_failing_callback_is_counted_and_the_others_go_on(void)
{
    uint64_t errors = opscope_callback_errors();
    for (int alone = 0; alone < 2; alone++) {
        begin();
        opscope_callback callback = saying("bad");
        callback.start = fail_start;
        callback.end = fail_end;
        add_global(callback);
        if (!alone) {
            add_global(saying("good"));
        }
        run_ranges(op_named("a"), 1);
        CHECK_TEXT(journal, alone ? "sbad ebad " : "sbad sgood ebad egood ");
        CHECK_EQUAL(opscope_callback_errors(), errors + 2 + 2 * (uint64_t)alone);
    }
}

static int call_operator(const opscope_range *fn, void *user, void **context)
{
    run_ranges(fn->op, 3);
    opscope_range *range = opscope_range_begin(fn->op, NULL);
    CHECK(range == NULL);
    return say_start(fn, user, context);
}

static int call_operator_at_end(const opscope_range *fn, void *user, void *context)
{
    run_ranges(fn->op, 3);
    return say_end(fn, user, context);
}

static void operators_inside_callbacks_are_not_recorded(void)
{
    for (int alone = 0; alone < 2; alone++) {
        begin();
        opscope_callback callback = saying("1");
        callback.start = call_operator;
        callback.end = call_operator_at_end;
        add_global(callback);
        if (!alone) {
            add_global(saying("2"));
        }
        run_ranges(op_named("a"), 2);
        CHECK_TEXT(journal, alone ? "s1 e1 s1 e1 " : "s1 s2 e1 e2 s1 s2 e1 e2 ");
    }
}

static void an_empty_set_of_scopes_means_all_and_another_replaces_it(void)
{
    begin();
    struct calls all = {0}, some = {0};
    add_global(counting(&all));
    opscope_callback two = counting(&some);
    two.scopes = 1u << OPSCOPE_USER_SCOPE | 1u << OPSCOPE_STATIC_RUNTIME_MODEL;
    add_global(two);
    for (int scope = 0; scope < OPSCOPE_SCOPE_COUNT; scope++) {
        run_ranges(op_of("scoped", (opscope_scope)scope, OPSCOPE_OTHER), 1);
    }
    CHECK_EQUAL(all.starts, OPSCOPE_SCOPE_COUNT);
    CHECK_EQUAL(some.starts, 2);
    CHECK_EQUAL(some.ends, 2);
}

static void bad_callbacks_are_refused(void)
{
    begin();
    const double bad[] = {-1e-300, 1.0000001, -1.0, 2.0, (double)NAN, (double)INFINITY,
                          -(double)INFINITY};
    opscope_callback callback = saying("1");
    opscope_handle handle = 77;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        callback.sampling_prob = bad[i];
        CHECK_EQUAL(opscope_add_global_callback(&callback, &handle), OPSCOPE_ERR_INVALID);
        CHECK_EQUAL(opscope_add_thread_local_callback(&callback, &handle), OPSCOPE_ERR_INVALID);
    }
    callback.sampling_prob = 1.0;
    callback.scopes = 1u << OPSCOPE_SCOPE_COUNT;
    CHECK_EQUAL(opscope_add_global_callback(&callback, &handle), OPSCOPE_ERR_INVALID);
    CHECK_EQUAL(handle, 77);
    CHECK(!opscope_has_callbacks());
}

static void a_callback_may_have_only_one_of_its_two_functions(void)
{
    begin();
    opscope_callback only_start = saying("1"), only_end = saying("2");
    only_start.end = NULL;
    only_end.start = NULL;
    only_end.end = fail_end;
    add_global(only_start);
    run_ranges(op_named("a"), 1);
    add_global(only_end);
    run_ranges(op_named("a"), 1);
    CHECK_TEXT(journal, "s1 s1 e2 ");
}

static int remember_range(const opscope_range *fn, void *user, void **context)
{
    *context = (void *)(uintptr_t)fn;
    ++*(int *)user;
    return OPSCOPE_OK;
}

static int know_range(const opscope_range *fn, void *user, void *context)
{
    CHECK(context == (const void *)fn);
    --*(int *)user;
    return OPSCOPE_OK;
}

static void sixty_four_callbacks_each_get_their_own_context_and_no_more_fit(void)
{
    begin();
    int open[64] = {0};
    opscope_handle handle = 0;
    for (int i = 0; i < 64; i++) {
        opscope_callback callback = {
            .start = remember_range, .end = know_range, .user = &open[i], .sampling_prob = 1.0};
        handle = i % 2 == 0 ? add_global(callback) : add_local(callback);
        opscope_range range;
        opscope_range_open(&range, op_named("a"), NULL);
        for (int k = 0; k <= i; k++) {
            CHECK_EQUAL(open[k], 1);
        }
        opscope_range_close(&range);
        for (int k = 0; k <= i; k++) {
            CHECK_EQUAL(open[k], 0);
        }
    }
    opscope_callback another = saying("65");
    opscope_handle untouched = handle;
    CHECK_EQUAL(opscope_add_global_callback(&another, &handle), OPSCOPE_ERR_FULL);
    CHECK_EQUAL(opscope_add_thread_local_callback(&another, &handle), OPSCOPE_ERR_FULL);
    CHECK_EQUAL(handle, untouched);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    add_global(another);
}

static void drop_is_called_once_when_nothing_can_follow(void)
{
    begin();
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(opscope_disable_callback(handle), OPSCOPE_OK);
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(calls.drops, 0);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(calls.drops, 1);
}

static uint64_t last_id;

static int keep_id(const opscope_range *fn, void *user, void **context)
{
    (void)user;
    (void)context;
    last_id = opscope_fn_handle(fn);
    CHECK_EQUAL(opscope_fn_thread_id(fn), opscope_thread_id());
    return OPSCOPE_OK;
}

static int same_id(const opscope_range *fn, void *user, void *context)
{
    (void)user;
    (void)context;
    CHECK_EQUAL(opscope_fn_handle(fn), last_id);
    return OPSCOPE_OK;
}

static void ids_are_given_only_where_asked_for(void)
{
    begin();
    opscope_callback callback = {.start = keep_id, .end = same_id, .sampling_prob = 1.0};
    opscope_handle without = add_global(callback);
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(last_id, 0);
    CHECK_EQUAL(opscope_remove_callback(without, true), OPSCOPE_OK);
    callback.needs_ids = true;
    add_global(callback);
    uint64_t before = 0;
    for (int i = 0; i < 100; i++) {
        run_ranges(op_named("a"), 1);
        CHECK(last_id > before);
        before = last_id;
    }
}

static void a_failed_range_is_known_as_failed_and_one_nobody_sees_is_not(void)
{
    begin();
    opscope_range range;
    memset(&range, 0xff, sizeof range);
    opscope_range_open(&range, op_named("a"), NULL);
    opscope_range_fail(&range);
    CHECK(!opscope_range_failed(&range));
    opscope_range_close(&range);
    add_global(saying("1"));
    opscope_range_open(&range, op_named("a"), NULL);
    CHECK(!opscope_range_failed(&range));
    opscope_range_fail(&range);
    CHECK(opscope_range_failed(&range));
    opscope_range_close(&range);
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
    RUN(a_failing_callback_is_counted_and_the_others_go_on);
    RUN(operators_inside_callbacks_are_not_recorded);
    RUN(an_empty_set_of_scopes_means_all_and_another_replaces_it);
    RUN(bad_callbacks_are_refused);
    RUN(a_callback_may_have_only_one_of_its_two_functions);
    RUN(sixty_four_callbacks_each_get_their_own_context_and_no_more_fit);
    RUN(drop_is_called_once_when_nothing_can_follow);
    RUN(ids_are_given_only_where_asked_for);
    RUN(a_failed_range_is_known_as_failed_and_one_nobody_sees_is_not);
    RUN(ranges_close_in_any_order);
    opscope_clear_callbacks();
    return 0;
}
