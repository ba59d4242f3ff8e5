/* tests/native/torch/fake_torch.c -- becomes a libtorch_cpu.so; see fake_torch.h. At exit its
 * registry is destroyed, as PyTorch's is, and whoever uses it afterwards ends the process badly. */
#include "fake_torch.h"

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(offsetof(struct fake_function, thread_id) == 0x58, "thread_id");
_Static_assert(offsetof(struct fake_function, scope) == 0x60, "scope");
_Static_assert(offsetof(struct fake_function, name) == 0xa0, "name");
_Static_assert(offsetof(struct fake_function, has_schema) == 0xc0, "has_schema");
_Static_assert(offsetof(struct fake_function, sequence_nr) == 0xc8, "sequence_nr");
_Static_assert(offsetof(struct fake_function, input_count) == 0xd8, "input_count");
_Static_assert(offsetof(struct fake_function, outputs) == 0x118, "outputs");
_Static_assert(offsetof(struct fake_function, forward_thread_id) == 0x130, "forward_thread_id");
_Static_assert(offsetof(struct fake_function, is_async) == 0x140, "is_async");

struct callback {
    void **(*start)(void **context, const struct fake_function *fn);
    void (*end)(const struct fake_function *fn, void *context);
    double sampling_prob;
    bool scopes[10];
    bool needs[3];
};

struct exceptions {
    void *caught;
    unsigned uncaught_count;
};

enum fake_fault fake_fault;

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static struct callback callbacks[FAKE_CALLBACKS]; /* registry */
static uint64_t handles[FAKE_CALLBACKS];          /* registry; 0: free */
static uint64_t last_handle;                      /* registry */
static uint64_t version = 1;                      /* registry to write, relaxed to read */
static bool is_destroyed;                         /* registry */
static uint64_t last_thread_id;
static __thread uint64_t own_thread_id;
static __thread uint64_t own_version;
static __thread struct callback own_callbacks[FAKE_CALLBACKS];
static __thread uint32_t own_count;
static __thread struct exceptions own_exceptions;
static __thread unsigned own_draws = 1;

static void destroy(void)
{
    is_destroyed = true;
}

static void register_destroy(void)
{
    atexit(destroy);
}

static void lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_destroy);
    pthread_mutex_lock(&registry);
    if (is_destroyed) {
        _exit(99);
    }
}

/* ---- what the bridge looks up ---------------------------------------------------------------- */

FAKE uint64_t fake_add(struct callback callback) __asm__(
    "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE");
uint64_t fake_add(struct callback callback)
{
    lock();
    uint64_t handle = ++last_handle;
    uint32_t i = 0;
    while (i < FAKE_CALLBACKS - 1 && handles[i] != 0) {
        i++;
    }
    callbacks[i] = callback;
    handles[i] = handle;
    __atomic_store_n(&version, version + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&registry);
    return handle;
}

FAKE void fake_remove(uint64_t handle) __asm__("_ZN2at14removeCallbackEm");
void fake_remove(uint64_t handle)
{
    lock();
    for (uint32_t i = 0; i < FAKE_CALLBACKS; i++) {
        handles[i] = handles[i] == handle ? 0 : handles[i];
    }
    __atomic_store_n(&version, version + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&registry);
}

FAKE bool fake_has(void) __asm__("_ZN2at18hasGlobalCallbacksEv");
bool fake_has(void)
{
    return fake_callback_count() != 0;
}

static void __attribute__((noinline)) unlock(void)
{
    pthread_mutex_unlock(&registry);
}

/* The bridge reads its code: the lock's address is the first that it passes on. */
FAKE void fake_clear(void) __asm__("_ZN2at20clearGlobalCallbacksEv");
__attribute__((no_sanitize("address", "thread", "undefined"))) void fake_clear(void)
{
    pthread_mutex_lock(&registry);
    memset(handles, 0, sizeof handles);
    version++;
    unlock();
}

static const struct fake_schema *schema_of(const struct fake_function *fn)
{
    return (const void *)fn->name.text;
}

FAKE const char *fake_name(const struct fake_function *fn) __asm__(
    "_ZNK2at14RecordFunction4nameEv");
const char *fake_name(const struct fake_function *fn)
{
    return fake_fault == FAKE_NAMES_ELSEWHERE ? "aten::empty"
           : fn->has_schema                   ? schema_of(fn)->name.text
                                              : fn->name.text;
}

FAKE const char *fake_overload(const struct fake_function *fn) __asm__(
    "_ZNK2at14RecordFunction13overload_nameEv");
const char *fake_overload(const struct fake_function *fn)
{
    return fn->has_schema ? schema_of(fn)->overload_name.text : "";
}

FAKE size_t
fake_num_inputs(const struct fake_function *fn) __asm__("_ZNK2at14RecordFunction10num_inputsEv");
size_t fake_num_inputs(const struct fake_function *fn)
{
    return fn->input_count;
}

FAKE bool fake_is_async(const struct fake_function *fn) __asm__(
    "_ZNK2at14RecordFunction7isAsyncEv");
bool fake_is_async(const struct fake_function *fn)
{
    return fn->is_async;
}

FAKE uint64_t fake_thread_id(void) __asm__("_ZN2at14RecordFunction15currentThreadIdEv");
uint64_t fake_thread_id(void)
{
    if (own_thread_id == 0) {
        own_thread_id = __atomic_add_fetch(&last_thread_id, 1, __ATOMIC_RELAXED);
    }
    return own_thread_id;
}

static uint64_t last_seed; /* of any thread; relaxed */

FAKE void fake_seed(uint32_t seed) __asm__("_ZN2at36set_record_function_seed_for_testingEj");
void fake_seed(uint32_t seed)
{
    __atomic_store_n(&last_seed, seed, __ATOMIC_RELAXED);
}

uint64_t fake_last_seed(void)
{
    return __atomic_load_n(&last_seed, __ATOMIC_RELAXED);
}

FAKE struct exceptions *fake_exceptions(void) __asm__("__cxa_get_globals");
struct exceptions *fake_exceptions(void)
{
    return &own_exceptions;
}

/* ---- ranges ------------------------------------------------------------------------------------ */

uint32_t fake_callback_count(void)
{
    uint32_t count = 0;
    lock();
    for (uint32_t i = 0; i < FAKE_CALLBACKS; i++) {
        count += handles[i] != 0;
    }
    pthread_mutex_unlock(&registry);
    return count;
}

static void refresh(void)
{
    if (own_version == __atomic_load_n(&version, __ATOMIC_RELAXED)) {
        return;
    }
    lock();
    own_version = version;
    own_count = 0;
    sched_yield(); /* a good moment for another thread to fork */
    for (uint32_t i = 0; i < FAKE_CALLBACKS; i++) {
        if (handles[i] != 0) {
            own_callbacks[own_count++] = callbacks[i];
        }
    }
    pthread_mutex_unlock(&registry);
}

static void run_starts(struct fake_function *fn)
{
    refresh();
    fn->thread_id = fake_thread_id() + (fake_fault == FAKE_THREAD_ELSEWHERE);
    fn->fired = 0;
    if (fake_fault == FAKE_CALLS_NOBODY) {
        return;
    }
    struct callback fire[FAKE_CALLBACKS];
    for (uint32_t i = 0; i < own_count; i++) {
        const double draw = (double)rand_r(&own_draws) / ((double)RAND_MAX + 1.0);
        if (own_callbacks[i].scopes[fn->scope] && draw < own_callbacks[i].sampling_prob) {
            fire[fn->fired++] = own_callbacks[i];
        }
    }
    for (uint32_t i = 0; i < fn->fired; i++) {
        fn->ends[i] = fire[i].end;
        fire[i].start(&fn->contexts[i], fn);
    }
}

static struct fake_string string_of(const char *text)
{
    return (struct fake_string){.text = text, .bytes = strlen(text)};
}

void fake_open(struct fake_function *fn, const char *name, const char *overload, uint8_t scope)
{
    memset(fn, 0, sizeof *fn);
    fn->scope = scope;
    fn->sequence_nr = -1;
    fn->name = string_of(name);
    if (overload != NULL) {
        struct fake_schema *schema = malloc(sizeof *schema);
        *schema = (struct fake_schema){string_of(name), string_of(overload)};
        fn->name.text = (const void *)schema;
        fn->has_schema = 1;
    }
    run_starts(fn);
}

void fake_open_async(struct fake_function *fn, const char *name)
{
    memset(fn, 0, sizeof *fn);
    fn->scope = 7;
    fn->name = string_of(name);
    fn->is_async = 1;
    run_starts(fn);
}

void fake_close(struct fake_function *fn)
{
    for (uint32_t i = 0; i < fn->fired; i++) {
        if (fake_fault != FAKE_FORGETS_ENDS) {
            fn->ends[i](fn, fn->contexts[i]);
        }
    }
    for (uint32_t i = 0; i < fn->fired; i++) {
        void (***context)(void *) = fn->contexts[i];
        if (context != NULL && fake_fault != FAKE_FORGETS_CONTEXTS) {
            (*context)[1](context);
        }
    }
    if (fn->has_schema) {
        free((void *)(uintptr_t)schema_of(fn));
    }
}

void fake_close_by_exception(struct fake_function *fn)
{
    own_exceptions.uncaught_count++;
    fake_close(fn);
    own_exceptions.uncaught_count--;
}
