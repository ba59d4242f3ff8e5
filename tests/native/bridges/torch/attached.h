/* tests/native/bridges/torch/attached.h -- the bridge attached to the fake PyTorch. */
#ifndef OPSCOPE_TESTS_ATTACHED_H
#define OPSCOPE_TESTS_ATTACHED_H

#include <pthread.h>

#include "check.h"
#include "fake_torch.h"
#include "opscope/record.h"
#include "private/torch.h"

static inline void run_op(const char *name, const char *overload)
{
    struct fake_function fn;
    fake_open(&fn, name, overload, OPSCOPE_FUNCTION);
    fake_close(&fn);
}

/* The arguments of torch.empty(0, pin_memory=False). */
static const struct fake_value zero = {.payload = 0, .tag = FAKE_INT};
static const struct fake_list sizes = {.first = &zero, .last = &zero + 1};

static inline void set_arguments(struct fake_value *inputs)
{
    memset(inputs, 0, FAKE_ARGUMENTS * sizeof *inputs);
    inputs[0] = (struct fake_value){.payload = (uint64_t)(uintptr_t)&sizes, .tag = FAKE_LIST};
    inputs[4].tag = FAKE_BOOL;
}

static inline void run_trial(void)
{
    struct fake_value inputs[FAKE_ARGUMENTS];
    set_arguments(inputs);
    fake_run_trial(inputs, FAKE_ARGUMENTS);
}

/* The result of the trial with the fake PyTorch's current state. */
static inline const char *try_out(void)
{
    const char *reason = opscope_torch_trial_begin("");
    if (reason != NULL) {
        return reason;
    }
    run_trial();
    return opscope_torch_trial_end();
}

static inline void attach(void)
{
    const char *reason = try_out();
    CHECK_TEXT(reason != NULL ? reason : "attached", "attached");
    reason = opscope_torch_fault(OPSCOPE_TORCH_FIELDS);
    CHECK_TEXT(reason != NULL ? reason : "with fields", "with fields");
}

static inline void *close_there(void *fn)
{
    fake_close(fn);
    return NULL;
}

static inline void close_on_another_thread(struct fake_function *fn)
{
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, close_there, fn), 0);
    pthread_join(thread, NULL);
}

#endif
