/* torch/thread_state.c -- see torch/thread_state.h.
 *
 * libtorch_cpu calls at::set_record_function_tls_ through a slot (torch/replaced.h).
 *
 * The state is an at::RecordFunctionTLS: a std::vector of the thread's own callbacks, and whether
 * ranges are on. Before the slot is replaced, PyTorch's functions show on the calling thread that
 * each is where this file expects it, and that the version of the callbacks follows: so no field
 * lies between. PyTorch's header must declare these two fields as well. If a later PyTorch adds
 * one, its own function stays.
 *
 * Threads: each calls the function for its own state, which no other thread accesses. The bridge's
 * lock is held around keep and leave.
 */
#define _GNU_SOURCE
#include "bridges/torch/thread_state.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "bridges/pages.h"
#include "bridges/torch/empty.h"
#include "bridges/torch/replaced.h"
#include "bridges/torch/symbols.h"

/* at::RecordFunctionTLS, and what follows it in PyTorch's own object for each thread. */
struct state {
    const void *first, *last, *capacity; /* the thread's own callbacks */
    bool is_enabled;
    uint64_t version; /* of the global callbacks, when the thread's lists were made */
};

/* Found once; constant before the slot is first replaced. */
static const struct state *(*present_state)(void);
static void (*set_state)(const struct state *state);
static bool is_tried; /* and found as expected */
static bool is_kept;  /* store_relaxed with the bridge's lock, load_relaxed by all */

static bool is_without_callbacks(const struct state *state)
{
    return state->first == state->last;
}

/* In place of PyTorch's function, which throws if memory runs out: compiled with -fexceptions. */
static void set_if_different(const struct state *wanted)
{
    const struct state *present = present_state();
    if (!is_without_callbacks(wanted) || !is_without_callbacks(present) ||
        wanted->is_enabled != present->is_enabled) {
        set_state(wanted);
    }
}

/* ---- the trial -------------------------------------------------------------------------------- */

static bool shows_enabled(const struct state *state, void (*enable)(bool), bool (*is_enabled)(void))
{
    const bool was_enabled = is_enabled();
    enable(!was_enabled);
    const bool shows_change = state->is_enabled == !was_enabled && is_without_callbacks(state);
    enable(was_enabled);
    return shows_change && state->is_enabled == was_enabled;
}

static bool shows_callbacks(const struct state *state,
                            uint64_t (*add)(struct opscope__torch_callback callback))
{
    const bool was_enabled = state->is_enabled;
    const uint64_t handle = add(opscope__torch_empty_callback());
    const bool shows_one = !is_without_callbacks(state) && state->is_enabled == was_enabled;
    opscope__torch.remove_callback(handle);
    return shows_one && is_without_callbacks(state);
}

/* Other threads may change the callbacks as well. */
static bool shows_version(const struct state *state)
{
    enum { TRIES = 8 };
    bool shows_each = false;
    for (int i = 0; i < TRIES && !shows_each; i++) {
        set_state(state);
        const uint64_t before = state->version;
        const uint64_t handle = opscope__torch.add_global_callback(opscope__torch_empty_callback());
        set_state(state);
        const uint64_t with_one = state->version;
        opscope__torch.remove_callback(handle);
        set_state(state);
        shows_each = with_one == before + 1 && state->version == before + 2;
    }
    return shows_each;
}

static const char *try_state(void *library, const struct opscope__pages *pages)
{
    void (*enable)(bool);
    bool (*is_enabled)(void);
    uint64_t (*add_to_thread)(struct opscope__torch_callback callback);
    if (!opscope__torch_symbol(library, "_ZN2at20enableRecordFunctionEb", &enable, sizeof enable) ||
        !opscope__torch_symbol(library, "_ZN2at23isRecordFunctionEnabledEv", &is_enabled,
                               sizeof is_enabled) ||
        !opscope__torch_symbol(library,
                               "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE",
                               &add_to_thread, sizeof add_to_thread)) {
        return "libtorch_cpu does not export what tells a thread's state";
    }
    const struct state *state = present_state();
    if (state == NULL || (uintptr_t)state % _Alignof(struct state) != 0 ||
        !opscope__pages_grant(pages, state, sizeof *state, PROT_READ)) {
        return "PyTorch has no readable state of this thread";
    }
    if (!is_without_callbacks(state)) {
        return "this thread has callbacks of its own";
    }
    return shows_enabled(state, enable, is_enabled) && shows_callbacks(state, add_to_thread) &&
                   shows_version(state)
               ? NULL
               : "PyTorch's state of a thread has unexpected fields";
}

/* ---- the function ----------------------------------------------------------------------------- */

static struct opscope__torch_replaced replaced = {
    .library = "libtorch_cpu.so",
    .symbol = "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE",
    .ours = (opscope__slot_function)set_if_different};

static const char *try_in(void *library)
{
    struct opscope__pages pages;
    if (!opscope__torch_symbol(library, replaced.symbol, &set_state, sizeof set_state) ||
        !opscope__torch_symbol(library, "_ZN2at24get_record_function_tls_Ev", &present_state,
                               sizeof present_state)) {
        return "libtorch_cpu does not export at::set_record_function_tls_";
    }
    if (opscope__pages_read(&pages) != OPSCOPE_OK) {
        return "the process's memory map cannot be read";
    }
    const char *reason = try_state(library, &pages);
    opscope__pages_release(&pages);
    is_tried = reason == NULL;
    return reason;
}

static const char *find(void)
{
    void *library = is_tried ? NULL : opscope__torch_library("libtorch_cpu.so");
    const char *reason = library != NULL ? try_in(library) : NULL;
    if (library != NULL) {
        dlclose(library); /* PyTorch itself keeps it loaded */
    }
    return reason != NULL ? reason : opscope__torch_replaced_find(&replaced);
}

const char *opscope__torch_keep_states(bool is_declared)
{
    if (!is_declared) {
        return "no record_function.h declares RecordFunctionTLS as expected";
    }
    const char *reason = find();
    if (reason != NULL || is_kept) {
        return reason;
    }
    opscope__store_relaxed(&is_kept, opscope__torch_replaced_lead(&replaced, true));
    return is_kept ? NULL : "the page of the slot cannot be made writable";
}

void opscope__torch_leave_states(void)
{
    if (is_kept) {
        opscope__store_relaxed(&is_kept, !opscope__torch_replaced_lead(&replaced, false));
    }
}

bool opscope__torch_keeps_states(void)
{
    return opscope__load_relaxed(&is_kept);
}
