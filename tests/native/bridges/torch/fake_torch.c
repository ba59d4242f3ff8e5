/* tests/native/bridges/torch/fake_torch.c -- becomes a libtorch_cpu.so; see fake_torch.h. At exit
 * it destroys its registry, as PyTorch does; a later use ends the process with an error. */
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
enum { SHORTER = 0x20 - sizeof(struct fake_string) };
_Static_assert(offsetof(struct fake_function, has_schema) == 0xc0 - SHORTER, "has_schema");
_Static_assert(offsetof(struct fake_function, sequence_nr) == 0xc8 - SHORTER, "sequence_nr");
_Static_assert(offsetof(struct fake_function, input_count) == 0xd8 - SHORTER, "input_count");
_Static_assert(offsetof(struct fake_function, outputs) == 0x118 - SHORTER, "outputs");
_Static_assert(offsetof(struct fake_function, forward_thread_id) == 0x130 - SHORTER,
               "forward_thread_id");
_Static_assert(offsetof(struct fake_function, is_async) == 0x140 - SHORTER, "is_async");

/* A std::unique_ptr to a context, in the memory through which a C++ function returns it: C returns
 * so large a struct in the same way (torch/abi.h). Only the pointer is written. */
struct returned {
    void *context;
    void *unwritten[2];
};

struct callback {
    struct returned (*start)(const struct fake_function *fn);
    void (*end)(const struct fake_function *fn, void *context);
    double sampling_prob;
    bool scopes[10];
    bool needs[3];
};

/* One of at::RecordFunctionCallbacksEntry; the vector of them, and the lock after it. */
struct entry {
    struct callback callback;
    bool is_enabled;
    uint64_t handle;
};
_Static_assert(sizeof(struct entry) == 56, "as in PyTorch");

enum { REGISTERED = 16 };

struct exceptions {
    void *caught;
    unsigned uncaught_count;
};

enum fake_fault fake_fault;
_Thread_local void *fake_inputs;
_Thread_local size_t fake_input_count;

static struct {
    uint64_t version; /* lock to write, relaxed to read */
    struct entry *first;
    struct entry *last;
    struct entry *capacity;
    pthread_mutex_t lock;
} registry = {.version = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
static uint64_t last_handle; /* lock */
static bool is_destroyed;    /* lock */
static uint64_t last_thread_id;
static __thread uint64_t own_thread_id;
static __thread uint64_t own_version;
static __thread struct callback own_callbacks[REGISTERED];
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
    pthread_mutex_lock(&registry.lock);
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
    if (registry.first == NULL) {
        registry.first = registry.last = calloc(REGISTERED, sizeof(struct entry));
        registry.capacity = registry.first + REGISTERED;
    }
    if (registry.last == registry.capacity) {
        _exit(98);
    }
    const uint64_t handle = ++last_handle;
    *registry.last++ = (struct entry){callback, true, handle};
    __atomic_store_n(&registry.version, registry.version + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&registry.lock);
    return handle;
}

FAKE void fake_remove(uint64_t handle) __asm__("_ZN2at14removeCallbackEm");
void fake_remove(uint64_t handle)
{
    if (fake_remove_own(handle)) {
        return;
    }
    lock();
    struct entry *to = registry.first;
    for (struct entry *from = registry.first; from < registry.last; from++) {
        if (from->handle != handle) {
            *to++ = *from;
        }
    }
    registry.last = to;
    __atomic_store_n(&registry.version, registry.version + 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&registry.lock);
}

uint64_t fake_version(void)
{
    lock();
    const uint64_t version = registry.version;
    pthread_mutex_unlock(&registry.lock);
    return version;
}

FAKE bool fake_has(void) __asm__("_ZN2at18hasGlobalCallbacksEv");
bool fake_has(void)
{
    return fake_callback_count() != 0;
}

static const struct fake_schema *schema_of(const struct fake_function *fn)
{
    return (const void *)fn->name.text;
}

FAKE const char *fake_name(const struct fake_function *fn) __asm__(
    "_ZNK2at14RecordFunction4nameEv");
const char *fake_name(const struct fake_function *fn)
{
    if (fake_fault == FAKE_NAME_FOLLOWS_POINTERS) {
        const char ***place = (void *)(uintptr_t)fn->outputs[0];
        return place != NULL ? **place : "aten::empty";
    }
    if (fake_fault == FAKE_NAME_IS_NO_FIELD) {
        return "aten::empty";
    }
    const bool has_schema =
        fake_fault == FAKE_SCHEMA_MOVED ? (fn->handle & 1) != 0 : fn->has_schema;
    return has_schema ? schema_of(fn)->name.text : fn->name.text;
}

FAKE const char *fake_overload(const struct fake_function *fn) __asm__(
    "_ZNK2at14RecordFunction13overload_nameEv");
const char *fake_overload(const struct fake_function *fn)
{
    if (!fn->has_schema) {
        return "";
    }
    const struct fake_string *overload = &schema_of(fn)->overload_name;
    return fake_fault == FAKE_OVERLOAD_MOVED ? (const char *)overload : overload->text;
}

FAKE size_t
fake_num_inputs(const struct fake_function *fn) __asm__("_ZNK2at14RecordFunction10num_inputsEv");
size_t fake_num_inputs(const struct fake_function *fn)
{
    return fake_fault == FAKE_INPUTS_MOVED ? (size_t)fn->inputs : fn->input_count;
}

FAKE size_t
fake_num_outputs(const struct fake_function *fn) __asm__("_ZNK2at14RecordFunction11num_outputsEv");
size_t fake_num_outputs(const struct fake_function *fn)
{
    void *const *outputs = fn->outputs + (fake_fault == FAKE_OUTPUTS_MOVED);
    return ((uintptr_t)outputs[1] - (uintptr_t)outputs[0]) / sizeof(struct fake_value);
}

FAKE bool fake_is_async(const struct fake_function *fn) __asm__(
    "_ZNK2at14RecordFunction7isAsyncEv");
bool fake_is_async(const struct fake_function *fn)
{
    return fake_fault == FAKE_ASYNC_MOVED   ? (fn->handle & 1) != 0
           : fake_fault == FAKE_ASYNC_TWICE ? (fn->handle & 1) != 0 || fn->is_async
                                            : fn->is_async;
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
    count = (uint32_t)(registry.last - registry.first);
    pthread_mutex_unlock(&registry.lock);
    return count;
}

static void refresh(void)
{
    if (own_version == __atomic_load_n(&registry.version, __ATOMIC_RELAXED)) {
        return;
    }
    lock();
    own_version = registry.version;
    own_count = 0;
    sched_yield(); /* lets another thread fork here */
    for (const struct entry *entry = registry.first; entry < registry.last; entry++) {
        own_callbacks[own_count++] = entry->callback;
    }
    pthread_mutex_unlock(&registry.lock);
}

/* As large as std::optional<at::StepCallbacks>, which C++ returns through memory. */
struct steps {
    uint64_t words[15];
};

/* Not inlined: ranges call it through the loader's slot, as in PyTorch. */
FAKE struct steps fake_steps(uint8_t scope) __asm__(
    "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE") __attribute__((noinline));
struct steps fake_steps(uint8_t scope)
{
    struct steps steps;
    for (uint64_t i = 0; i < sizeof steps.words / sizeof *steps.words; i++) {
        steps.words[i] = i << 8 | scope;
    }
    return steps;
}

/* What the function returns passes whatever takes its place. */
static void ask_for_callbacks(uint8_t scope)
{
    const struct steps steps = fake_steps(scope);
    for (uint64_t i = 0; i < sizeof steps.words / sizeof *steps.words; i++) {
        if (steps.words[i] != (i << 8 | scope)) {
            _exit(97);
        }
    }
}

static void run_starts(struct fake_function *fn)
{
    ask_for_callbacks(fn->scope);
    refresh();
    fn->thread_id = fake_thread_id();
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
    if (fake_fault == FAKE_SCOPE_ELSEWHERE) {
        fn->scope = (uint8_t)(fn->scope + 1);
    }
    for (uint32_t i = 0; i < fn->fired; i++) {
        fn->ends[i] = fire[i].end;
        fn->contexts[i] = fire[i].start(fn).context;
    }
}

#ifdef FAKE_OLD_STRINGS
/* It tells the kind of strings. */
FAKE void fake_set_logger(void *by_value) __asm__(
    "_ZN3c1017SetAPIUsageLoggerESt8functionIFvRKSsEE");
void fake_set_logger(void *by_value)
{
    (void)by_value;
}

struct old_text {
    uint64_t bytes, capacity, users;
    char text[];
};

static struct fake_string string_of(const char *text)
{
    struct old_text *made = calloc(1, sizeof *made + strlen(text) + 1);
    made->bytes = made->capacity = strlen(text);
    return (struct fake_string){.text = strcpy(made->text, text)};
}

static void free_string(struct fake_string string)
{
    free((void *)((uintptr_t)string.text - sizeof(struct old_text)));
}
#else
static struct fake_string string_of(const char *text)
{
    return (struct fake_string){.text = text, .bytes = strlen(text)};
}

static void free_string(struct fake_string string)
{
    (void)string;
}
#endif

static _Thread_local int64_t next_sequence_nr = -1;
static _Thread_local uint64_t next_forward_thread_id;

void fake_open(struct fake_function *fn, const char *name, const char *overload, uint8_t scope)
{
    memset(fn, 0, sizeof *fn);
    fn->scope = scope;
    fn->sequence_nr = next_sequence_nr;
    fn->forward_thread_id = next_forward_thread_id;
    fn->name = string_of(name);
    fn->inputs = fake_inputs;
    fn->input_count = fake_input_count;
    if (overload != NULL) {
        struct fake_schema *schema = malloc(sizeof *schema);
        *schema = (struct fake_schema){string_of(name), string_of(overload)};
        free_string(fn->name);
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

void fake_run_trial(const struct fake_value *inputs, size_t count)
{
    static const struct fake_value tensor = {.tag = FAKE_TENSOR};
    struct fake_function fn;
    void *const kept_inputs = fake_inputs;
    const size_t kept_count = fake_input_count;
    fake_inputs = (void *)(uintptr_t)inputs;
    fake_input_count = count;
    fake_open(&fn, "aten::empty", "memory_format", 0);
    fake_close(&fn);
    fake_inputs = NULL;
    fake_input_count = 0;
    fake_open(&fn, "a record_function", NULL, 7);
    fake_close(&fn);
    next_sequence_nr = 41;
    fake_open(&fn, "aten::neg", "", 0);
    fake_close(&fn);
    fake_inputs = (void *)(uintptr_t)&tensor;
    fake_input_count = 1;
    next_sequence_nr += fake_fault == FAKE_SEQUENCE_ELSEWHERE;
    next_forward_thread_id = fake_thread_id() + (fake_fault == FAKE_FORWARD_ELSEWHERE);
    fake_open(&fn, "NegBackward0", NULL, 1);
    fake_close(&fn);
    next_sequence_nr = -1;
    next_forward_thread_id = 0;
    fake_inputs = kept_inputs;
    fake_input_count = kept_count;
}

/* An operator has one output. */
static void set_outputs(struct fake_function *fn)
{
    static const struct fake_value tensor = {.tag = FAKE_TENSOR};
    if (fn->has_schema && fake_fault != FAKE_OUTPUTS_ELSEWHERE) {
        fn->outputs[0] = (void *)(uintptr_t)&tensor;
        fn->outputs[1] = fn->outputs[2] = (void *)(uintptr_t)(&tensor + 1);
    }
}

void fake_close(struct fake_function *fn)
{
    set_outputs(fn);
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
        free_string(schema_of(fn)->name);
        free_string(schema_of(fn)->overload_name);
        free((void *)(uintptr_t)schema_of(fn));
    } else {
        free_string(fn->name);
    }
}

void fake_close_by_exception(struct fake_function *fn)
{
    own_exceptions.uncaught_count++;
    fake_close(fn);
    own_exceptions.uncaught_count--;
}
