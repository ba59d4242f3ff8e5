/* torch/count.c -- see torch/count.h. The bridge's lock is held around find, want and leave. */
#include "bridges/torch/count.h"

#include "base/atomics.h"
#include "base/hot.h"
#include "bridges/torch/abi.h"
#include "bridges/torch/replaced.h"
#include "bridges/torch/symbols.h"
#include "opscope/record.h"
#include "record/thread.h"

static bool is_found; /* store_relaxed with the bridge's lock, load_relaxed by all */

/* A thread's first range: without a state, its ranges would be counted nowhere, and its CPU time be
 * known from the process's clock alone. */
static struct opscope__thread *OPSCOPE__COLD begin_thread(void)
{
    (void)opscope_thread_id(); /* makes the state */
    return opscope__hot.thread;
}

static void OPSCOPE__HOT note(uintptr_t scope)
{
    if ((uint8_t)scope != OPSCOPE_FUNCTION) {
        return;
    }
    struct opscope__thread *thread = opscope__hot.thread;
    thread = __builtin_expect(thread != NULL, 1) ? thread : begin_thread();
    if (thread != NULL) {
        /* Partner: the load in opscope__registry_counted; independent of other memory. */
        opscope__store_relaxed(&thread->counted, thread->counted + 1);
    }
}

/* std::optional<at::StepCallbacks> at::getStepCallbacksUnlessEmpty(at::RecordScope) */
OPSCOPE__CXX_BEFORE(count, note, original);

static struct opscope__torch_replaced replaced = {
    .library = "libtorch_cpu.so",
    .symbol = "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE",
    .ours = (opscope__slot_function)count};

const char *opscope__torch_find_count(void)
{
    const char *reason = opscope__torch_replaced_find(&replaced);
    if (original == NULL) { /* written before the slot leads here */
        original = replaced.theirs;
    }
    /* Two changes of the page's protection for each window would cost more than to count always. */
    if (reason == NULL && replaced.is_read_only && !is_found &&
        !opscope__torch_replaced_lead(&replaced, true)) {
        reason = "the page of the slot cannot be made writable";
    }
    opscope__store_relaxed(&is_found, reason == NULL);
    return reason;
}

bool opscope__torch_counts(void)
{
    return opscope__load_relaxed(&is_found);
}

void opscope__torch_want_count(bool is_wanted)
{
    if (is_found && !replaced.is_read_only) {
        (void)opscope__torch_replaced_lead(&replaced, is_wanted);
    }
}

void opscope__torch_leave_count(void)
{
    if (is_found) {
        (void)opscope__torch_replaced_lead(&replaced, false);
    }
    opscope__store_relaxed(&is_found, false);
}
