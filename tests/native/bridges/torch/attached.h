/* tests/native/torch/attached.h -- the bridge attached to the fake PyTorch. */
#ifndef OPSCOPE_TESTS_ATTACHED_H
#define OPSCOPE_TESTS_ATTACHED_H

#include <pthread.h>

#include "check.h"
#include "fake_torch.h"
#include "opscope/record.h"
#include "opscope/torch.h"

static inline void run_op(const char *name, const char *overload)
{
    struct fake_function fn;
    fake_open(&fn, name, overload, OPSCOPE_FUNCTION);
    fake_close(&fn);
}

/* What the trial says of it as it is now. */
static inline const char *try_out(void)
{
    const char *reason = opscope_torch_trial_begin("2.13.0+cpu");
    if (reason != NULL) {
        return reason;
    }
    run_op("aten::empty", "memory_format");
    return opscope_torch_trial_end();
}

static inline void attach(void)
{
    CHECK_TEXT(try_out() != NULL ? "stood down" : "attached", "attached");
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
