/* tests/native/ranges.h -- the operators and ranges of the tests. */
#ifndef OPSCOPE_TESTS_RANGES_H
#define OPSCOPE_TESTS_RANGES_H

#include "check.h"
#include "opscope/record.h"

static inline const opscope_op *op_of(const char *name, opscope_scope scope, opscope_phase phase)
{
    const opscope_op *op = NULL;
    CHECK_EQUAL(opscope_op_intern(name, "", scope, phase, &op), OPSCOPE_OK);
    return op;
}

static inline const opscope_op *op_named(const char *name)
{
    return op_of(name, OPSCOPE_FUNCTION, OPSCOPE_FORWARD);
}

static inline void run_ranges(const opscope_op *op, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        opscope_range range;
        opscope_range_open(&range, op, NULL);
        opscope_range_close(&range);
    }
}

static inline opscope_handle add_global(opscope_callback callback)
{
    opscope_handle handle = 0;
    CHECK_EQUAL(opscope_add_global_callback(&callback, &handle), OPSCOPE_OK);
    return handle;
}

static inline opscope_handle add_local(opscope_callback callback)
{
    opscope_handle handle = 0;
    CHECK_EQUAL(opscope_add_thread_local_callback(&callback, &handle), OPSCOPE_OK);
    return handle;
}

/* A callback that counts its calls. Its user may be shared by threads. */
struct calls {
    uint64_t starts;
    uint64_t ends;
    uint64_t drops;
};

static inline int count_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)context;
    __atomic_fetch_add(&((struct calls *)user)->starts, 1, __ATOMIC_RELAXED);
    return OPSCOPE_OK;
}

static inline int count_end(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    (void)context;
    __atomic_fetch_add(&((struct calls *)user)->ends, 1, __ATOMIC_RELAXED);
    return OPSCOPE_OK;
}

static inline void count_drop(void *user)
{
    __atomic_fetch_add(&((struct calls *)user)->drops, 1, __ATOMIC_RELAXED);
}

static inline opscope_callback counting(struct calls *calls)
{
    return (opscope_callback){
        .start = count_start, .end = count_end, .user = calls, .sampling_prob = 1.0};
}

/* The same, and counts its drops. They may come late: `calls` must stay valid. */
static inline opscope_callback dropping(struct calls *calls)
{
    opscope_callback callback = counting(calls);
    callback.drop = count_drop;
    return callback;
}

#endif
