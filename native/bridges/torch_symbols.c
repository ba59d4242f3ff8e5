/* torch_symbols.c -- finds PyTorch's functions and lock in the process; the versions that are
 * known.
 *
 * How each offset of a version is known. PyTorch's public header ATen/record_function.h of that
 * version gives the order of the fields; the exported accessors, disassembled, give where they lie
 * (RecordFunction::name reads has_schema and name, num_inputs reads input_count, num_outputs the
 * outputs, isAsync the flag, end the callbacks before the thread id). The trial (torch_trial.c)
 * compares every field that has an accessor with it, for one operator, before the bridge is used;
 * tests/bridges/test_torch_values.py compares the others (sequence and forward thread) with what
 * torch.profiler says.
 *
 * A new version is one more row: install that PyTorch, add the row of the version before under its
 * name and run tests/bridges with it. What moved shows there; the disassembly says where to. A row
 * is of one version only, patch release and all: what was not tried is not known.
 *
 * 2.13.0 is what the tests run with, built for the CPU. 2.14.1 and 2.15.0 were tried as PyPI has
 * them, built for CUDA, with Python 3.11 on a machine without a GPU: with the tests of
 * tests/bridges about attaching, counts, values, labels, usage, archives and windows.
 *
 * The lock of PyTorch's registry is held by whoever adds, removes or takes a snapshot of callbacks.
 * A fork at such a moment would leave it locked in the child for ever, so the bridge takes it for
 * the time of a fork. It has no name: at::clearGlobalCallbacks loads its address as the first thing
 * it passes to a function. What is found that way is believed after it was seen to keep a thread
 * out of at::hasGlobalCallbacks.
 */
#define _GNU_SOURCE
#include "bridges/torch_symbols.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/mman.h>

#include "base/atomics.h"
#include "bridges/pages.h"

struct opscope__torch opscope__torch;

struct known_version {
    const char *version; /* without what follows a plus sign: builds differ by it */
    struct opscope__torch_layout layout;
};

#define LAYOUT_OF_2_13                                                                             \
    .thread_id = 0x58, .scope = 0x60, .name = 0xa0, .has_schema = 0xc0, .overload_name = 0x20,     \
    .sequence_nr = 0xc8, .inputs = 0xd0, .input_count = 0xd8, .outputs = 0x118,                    \
    .forward_thread_id = 0x130, .is_async = 0x140

static const struct known_version known_versions[] = {
    {"2.15.0", {LAYOUT_OF_2_13}},
    {"2.14.1", {LAYOUT_OF_2_13}},
    {"2.13.0", {LAYOUT_OF_2_13}},
};

bool opscope__torch_layout_of(const char *version, struct opscope__torch_layout *out)
{
    const size_t length = strcspn(version, "+");
    for (size_t i = 0; i < sizeof known_versions / sizeof known_versions[0]; i++) {
        if (strncmp(known_versions[i].version, version, length) == 0 &&
            known_versions[i].version[length] == '\0') {
            *out = known_versions[i].layout;
            return true;
        }
    }
    return false;
}

/* ---- functions ------------------------------------------------------------------------------ */

/* dlsym gives functions as data pointers. */
static bool find(void *library, const char *name, void *function, size_t bytes)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, bytes);
    return found != NULL;
}

#define FIND(field, name) find(library, name, &opscope__torch.field, sizeof opscope__torch.field)

static bool find_functions(void *library)
{
    return FIND(add_global_callback, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE") &&
           FIND(remove_callback, "_ZN2at14removeCallbackEm") &&
           FIND(has_global_callbacks, "_ZN2at18hasGlobalCallbacksEv") &&
           FIND(name, "_ZNK2at14RecordFunction4nameEv") &&
           FIND(overload_name, "_ZNK2at14RecordFunction13overload_nameEv") &&
           FIND(num_inputs, "_ZNK2at14RecordFunction10num_inputsEv") &&
           FIND(is_async, "_ZNK2at14RecordFunction7isAsyncEv") &&
           FIND(thread_id, "_ZN2at14RecordFunction15currentThreadIdEv") &&
           FIND(seed_sampling, "_ZN2at36set_record_function_seed_for_testingEj") &&
           FIND(exceptions, "__cxa_get_globals"); /* libtorch_cpu's own libstdc++ */
}

static void find_tensor_functions(void *library)
{
    if (!FIND(tensor_dim, "aoti_torch_get_dim") || !FIND(tensor_sizes, "aoti_torch_get_sizes") ||
        !FIND(tensor_dtype, "aoti_torch_get_dtype") ||
        !FIND(tensor_device_type, "aoti_torch_get_device_type") ||
        !FIND(tensor_is_defined, "aoti_torch_is_defined")) {
        opscope__torch.tensor_is_defined = NULL;
    }
}

/* ---- the lock ------------------------------------------------------------------------------- */

enum { CODE_BYTES = 160, LOCKED_AND_WAITED_FOR = 2 };

static void *ask(void *is_done)
{
    (void)opscope__torch.has_global_callbacks();
    opscope__store_release((bool *)is_done, true); /* partner: the load in keeps_threads_out */
    return NULL;
}

/* Whether a thread that asks PyTorch for its callbacks waits for `mutex`. */
static bool keeps_threads_out(pthread_mutex_t *mutex)
{
    bool is_done = false;
    pthread_t thread;
    pthread_mutex_lock(mutex);
    if (pthread_create(&thread, NULL, ask, &is_done) != 0) {
        pthread_mutex_unlock(mutex);
        return false;
    }
    while (!opscope__load_acquire(&is_done) &&
           opscope__load_relaxed(&mutex->__data.__lock) != LOCKED_AND_WAITED_FOR) {
        sched_yield();
    }
    const bool was_kept_out = !opscope__load_acquire(&is_done);
    pthread_mutex_unlock(mutex);
    pthread_join(thread, NULL);
    return was_kept_out;
}

/* A normal mutex of pthreads, as far as one can tell without touching it. */
static bool looks_like_a_mutex(const pthread_mutex_t *mutex, const struct opscope__pages *pages)
{
    return (uintptr_t)mutex % _Alignof(pthread_mutex_t) == 0 &&
           opscope__pages_grant(pages, mutex, sizeof *mutex, PROT_READ | PROT_WRITE) &&
           mutex->__data.__kind == PTHREAD_MUTEX_NORMAL &&
           (unsigned)mutex->__data.__lock <= LOCKED_AND_WAITED_FOR;
}

static pthread_mutex_t *find_registry(const unsigned char *code)
{
    /* lea rdi, [rip + distance]; call. */
    enum { LEA_BYTES = 7 };
    struct opscope__pages pages;
    if (opscope__pages_read(&pages) != OPSCOPE_OK) {
        return NULL;
    }
    pthread_mutex_t *found = NULL;
    const bool is_code =
        opscope__pages_grant(&pages, code, CODE_BYTES + LEA_BYTES + 1, PROT_READ | PROT_EXEC);
    for (size_t i = 0; is_code && found == NULL && i < CODE_BYTES; i++) {
        const unsigned char *at = &code[i];
        if (at[0] == 0x48 && at[1] == 0x8d && at[2] == 0x3d && at[LEA_BYTES] == 0xe8) {
            int32_t distance;
            memcpy(&distance, &at[3], sizeof distance);
            pthread_mutex_t *mutex =
                (pthread_mutex_t *)((uintptr_t)(at + LEA_BYTES) + (uintptr_t)(intptr_t)distance);
            found = looks_like_a_mutex(mutex, &pages) && keeps_threads_out(mutex) ? mutex : NULL;
        }
    }
    opscope__pages_release(&pages);
    return found;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static const char *find_all(void *library)
{
    const void *clear = dlsym(library, "_ZN2at20clearGlobalCallbacksEv");
    if (!find_functions(library) || clear == NULL) {
        return "libtorch_cpu does not export what is needed";
    }
    find_tensor_functions(library);
    (void)opscope__torch
        .has_global_callbacks(); /* makes its registry, lock and all, where it is not */
    opscope__torch.registry = find_registry(clear);
    return opscope__torch.registry != NULL ? NULL : "the lock of its callbacks was not found";
}

const char *opscope__torch_find(void)
{
#if !defined(__x86_64__) || !defined(__GLIBC__)
    return "not x86-64 with glibc";
#endif
    void *library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (library == NULL) {
        return "libtorch_cpu is not loaded";
    }
    const char *reason = find_all(library);
    if (reason != NULL) {
        dlclose(library); /* else it stays: the bridge calls it as long as the process lives */
    }
    return reason;
}
