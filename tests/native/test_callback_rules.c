/* tests/native/test_callback_rules.c -- what a callback may do: fail, call operators, select scopes
 * and ids; which callbacks are refused; and the limit of their number. */
#include <math.h>

#include "journal.h"

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
    const double bad[] = {-1e-300,          1.0000001,        -1.0, 2.0, (double)NAN,
                          (double)INFINITY, -(double)INFINITY};
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
    opscope_handle handle = add_global(dropping(&calls));
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

static void a_failed_range_is_marked_as_failed_and_an_unobserved_one_is_not(void)
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

int main(void)
{
    RUN(a_failing_callback_is_counted_and_the_others_go_on);
    RUN(operators_inside_callbacks_are_not_recorded);
    RUN(an_empty_set_of_scopes_means_all_and_another_replaces_it);
    RUN(bad_callbacks_are_refused);
    RUN(a_callback_may_have_only_one_of_its_two_functions);
    RUN(sixty_four_callbacks_each_get_their_own_context_and_no_more_fit);
    RUN(drop_is_called_once_when_nothing_can_follow);
    RUN(ids_are_given_only_where_asked_for);
    RUN(a_failed_range_is_marked_as_failed_and_an_unobserved_one_is_not);
    opscope_clear_callbacks();
    return 0;
}
