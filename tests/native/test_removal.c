/* tests/native/test_removal.c -- removing a callback while other threads, or open ranges, are
 * inside it. test_callbacks.c has the cases with one thread. */
#include <pthread.h>
#include <sched.h>

#include "ranges.h"

static bool read_flag(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void set_flag(bool *flag)
{
    __atomic_store_n(flag, true, __ATOMIC_RELEASE);
}

static void await(const bool *flag)
{
    while (!read_flag(flag)) {
        sched_yield();
    }
}

/* A callback whose start blocks until it is released. */
struct gate {
    bool entered, may_leave, left;
};

static int enter_gate(const opscope_range *fn, void *user, void **context)
{
    struct gate *gate = user;
    (void)fn;
    (void)context;
    set_flag(&gate->entered);
    await(&gate->may_leave);
    return OPSCOPE_OK;
}

static int leave_gate(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    (void)context;
    set_flag(&((struct gate *)user)->left);
    return OPSCOPE_OK;
}

static void *run_one(void *unused)
{
    (void)unused;
    run_ranges(op_named("a"), 1);
    return NULL;
}

struct removal {
    opscope_handle handle;
    bool done;
    struct gate *gate;
};

static void *remove_and_wait(void *arg)
{
    struct removal *removal = arg;
    CHECK_EQUAL(opscope_remove_callback(removal->handle, true), OPSCOPE_OK);
    CHECK(read_flag(&removal->gate->left));
    set_flag(&removal->done);
    return NULL;
}

static void a_waiting_removal_returns_only_when_no_thread_is_inside(void)
{
    struct gate gate = {false, false, false};
    struct removal removal = {.gate = &gate};
    pthread_t inside, remover;
    removal.handle = add_global((opscope_callback){
        .start = enter_gate, .end = leave_gate, .user = &gate, .sampling_prob = 1.0});
    CHECK_EQUAL(pthread_create(&inside, NULL, run_one, NULL), 0);
    await(&gate.entered);
    CHECK_EQUAL(pthread_create(&remover, NULL, remove_and_wait, &removal), 0);
    while (opscope_disable_callback(removal.handle) != OPSCOPE_ERR_NOT_FOUND) {
        sched_yield(); /* until it is removed, except for those inside */
    }
    for (int i = 0; i < 100; i++) {
        CHECK(!read_flag(&removal.done));
        sched_yield();
    }
    set_flag(&gate.may_leave);
    CHECK_EQUAL(pthread_join(remover, NULL), 0);
    CHECK_EQUAL(pthread_join(inside, NULL), 0);
}

static opscope_handle handle_within;
static int status_within = 1;

static int remove_own(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)user;
    (void)context;
    status_within = opscope_remove_callback(handle_within, true);
    return OPSCOPE_OK;
}

static void waiting_from_within_is_an_error_and_the_callback_is_removed(void)
{
    struct calls calls = {0};
    opscope_callback callback = dropping(&calls);
    callback.start = remove_own;
    handle_within = add_global(callback);
    run_ranges(op_named("a"), 5);
    CHECK_EQUAL(status_within, OPSCOPE_ERR_WOULD_DEADLOCK);
    CHECK_EQUAL(calls.ends, 1);
    CHECK_EQUAL(calls.drops, 1);
    CHECK_EQUAL(opscope_remove_callback(handle_within, true), OPSCOPE_ERR_NOT_FOUND);
}

static void waiting_inside_an_open_range_is_an_error_too(void)
{
    struct calls calls = {0};
    opscope_handle handle = add_global(counting(&calls));
    opscope_range range;
    opscope_range_open(&range, op_named("a"), NULL);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_ERR_WOULD_DEADLOCK);
    opscope_range_close(&range);
    CHECK_EQUAL(calls.ends, 1);
}

static void *open_async(void *range)
{
    static const opscope_range_info info = {.is_async = true};
    opscope_range_open(range, op_named("a"), &info);
    return NULL;
}

static void *close_range(void *range)
{
    opscope_range_close(range);
    return NULL;
}

static void *on_new_thread(void *(*function)(void *), void *arg)
{
    pthread_t thread;
    void *result;
    CHECK_EQUAL(pthread_create(&thread, NULL, function, arg), 0);
    CHECK_EQUAL(pthread_join(thread, &result), 0);
    return result;
}

static void an_async_range_may_be_closed_by_another_thread_even_after_its_opener_ended(void)
{
    struct calls calls = {0};
    opscope_range ranges[3];
    opscope_handle handle = add_global(dropping(&calls));
    open_async(&ranges[0]);
    on_new_thread(close_range, &ranges[0]); /* a thread without any Opscope state so far */
    on_new_thread(open_async, &ranges[1]);
    on_new_thread(close_range, &ranges[1]);
    on_new_thread(open_async, &ranges[2]);
    close_range(&ranges[2]);
    CHECK_EQUAL(calls.starts, 3);
    CHECK_EQUAL(calls.ends, 3);
    CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
    run_ranges(op_named("a"), 1);
    CHECK_EQUAL(calls.drops, 1);
}

static void a_waiting_removal_waits_for_async_ranges_whose_opener_ended(void)
{
    struct gate gate = {false, true, false};
    struct removal removal = {.gate = &gate};
    opscope_range range;
    pthread_t remover;
    removal.handle = add_global((opscope_callback){
        .start = enter_gate, .end = leave_gate, .user = &gate, .sampling_prob = 1.0});
    on_new_thread(open_async, &range);
    CHECK_EQUAL(pthread_create(&remover, NULL, remove_and_wait, &removal), 0);
    while (opscope_disable_callback(removal.handle) != OPSCOPE_ERR_NOT_FOUND) {
        sched_yield();
    }
    for (int i = 0; i < 100; i++) {
        CHECK(!read_flag(&removal.done));
        sched_yield();
    }
    opscope_range_close(&range);
    CHECK_EQUAL(pthread_join(remover, NULL), 0);
}

static void waiting_for_a_callback_without_open_ranges_returns_at_once(void)
{
    struct calls calls = {0};
    for (int i = 0; i < 100; i++) {
        opscope_handle handle = add_global(dropping(&calls));
        on_new_thread(run_one, NULL);
        CHECK_EQUAL(opscope_remove_callback(handle, true), OPSCOPE_OK);
        CHECK_EQUAL(calls.starts, i + 1);
    }
    CHECK_EQUAL(calls.drops, 100);
}

int main(void)
{
    RUN(a_waiting_removal_returns_only_when_no_thread_is_inside);
    RUN(waiting_from_within_is_an_error_and_the_callback_is_removed);
    RUN(waiting_inside_an_open_range_is_an_error_too);
    RUN(an_async_range_may_be_closed_by_another_thread_even_after_its_opener_ended);
    RUN(a_waiting_removal_waits_for_async_ranges_whose_opener_ended);
    RUN(waiting_for_a_callback_without_open_ranges_returns_at_once);
    return 0;
}
