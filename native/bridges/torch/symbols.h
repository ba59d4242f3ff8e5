/* torch/symbols.h -- the parts of the loaded libtorch_cpu that the bridge uses.
 *
 * These are exported functions by their C++ names, and offsets of fields. C++ objects cross the
 * boundary as follows. RecordFunctionCallback is passed by value and trivially copyable, so it is
 * passed like a C struct. A start callback returns a std::unique_ptr<ObserverContext> through
 * memory (torch/abi.h). An ObserverContext has a virtual destructor and nothing else.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_SYMBOLS_H
#define OPSCOPE_BRIDGES_TORCH_SYMBOLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "bridges/torch/abi.h"
#include "opscope/record.h"

/* at::RecordFunction: read through offsets, never created. */
struct opscope__torch_function;

/* at::ObserverContext: PyTorch calls destroy_and_free when it no longer needs the context. */
struct opscope__torch_context {
    const struct opscope__torch_context_type *type;
};

struct opscope__torch_context_type {
    void (*destroy)(struct opscope__torch_context *context);
    void (*destroy_and_free)(struct opscope__torch_context *context);
};

typedef void (*opscope__torch_end)(const struct opscope__torch_function *fn,
                                   struct opscope__torch_context *context);

/* at::RecordFunctionCallback. */
struct opscope__torch_callback {
    /* Of a function that takes a struct opscope__torch_context ** and the range. */
    opscope__cxx_entry start;
    opscope__torch_end end;
    double sampling_prob;
    bool scopes[OPSCOPE_SCOPE_COUNT];
    bool needs_inputs;
    bool needs_outputs;
    bool needs_ids;
};

/* Offsets in at::RecordFunction (torch/layout.h finds them). A name is a std::string in place, or a
 * pointer to a c10::FunctionSchema, which starts with two strings: name and overload name. */
struct opscope__torch_layout {
    uint16_t scope;
    uint16_t name;
    uint16_t has_schema;
    uint16_t sequence_nr;
    uint16_t inputs;
    uint16_t input_count;
    uint16_t outputs;
    uint16_t forward_thread_id;
    uint16_t is_async;
};

/* __cxa_eh_globals of the Itanium C++ ABI: a thread's exception state. */
struct opscope__cxx_exceptions {
    void *caught;
    unsigned uncaught_count;
};

struct opscope__torch {
    struct opscope__torch_layout layout; /* valid unless is_basic */
    bool is_basic;        /* the layout is not known: only the exported functions are used */
    bool has_old_strings; /* std::string as before C++11: a pointer, with the length before its text
                           */
    uint64_t (*add_global_callback)(struct opscope__torch_callback callback);
    void (*remove_callback)(uint64_t handle);
    bool (*has_global_callbacks)(void);
    const char *(*name)(const struct opscope__torch_function *fn);
    const char *(*overload_name)(const struct opscope__torch_function *fn); /* NULL before 2.7 */
    size_t (*num_inputs)(const struct opscope__torch_function *fn);
    size_t (*num_outputs)(const struct opscope__torch_function *fn);
    bool (*is_async)(const struct opscope__torch_function *fn);
    uint64_t (*thread_id)(void);
    void (*seed_sampling)(uint32_t seed); /* of the calling thread */
    const struct opscope__cxx_exceptions *(*exceptions)(void);
    /* The id of the backward that the calling thread evaluates; -1: none. NULL if it is not
     * exported. */
    int (*graph_task_id)(void);
    pthread_mutex_t *registry; /* guards PyTorch's global callbacks */
};

/* Written while attaching, before PyTorch gets a callback; constant afterwards. */
extern struct opscope__torch opscope__torch;

/* Fills in all but layout, is_basic and registry; NULL, or the reason why it failed. */
const char *opscope__torch_find(void);

/* A library of the process by the start of its file's name ("libc10.so", also for libc10.so.2.6),
 * as by dlopen, which it keeps loaded; or NULL. */
void *opscope__torch_library(const char *name);
/* Puts the address of a library's symbol into `function`; NULL and false if it has none. */
bool opscope__torch_symbol(void *library, const char *name, void *function, size_t bytes);

/* Seeds PyTorch's sampling on this thread from the operating system; otherwise it draws the same
 * numbers in every thread and process. */
void opscope__torch_seed_sampling(void);

#define OPSCOPE__TORCH_FIELD(type, object, offset)                                                 \
    (*(const type *)(const void *)((const char *)(object) + (offset)))

/* The two kinds of std::string of libstdc++; which one a PyTorch has depends on its build. */
enum { OPSCOPE__TORCH_STRING_BYTES = 32, OPSCOPE__TORCH_OLD_STRING_BYTES = 8 };

/* The text of a std::string, NUL-terminated. */
static inline const char *opscope__torch_text(const void *string)
{
    return OPSCOPE__TORCH_FIELD(char *, string, 0);
}

/* Its length. Old strings have it before the text, followed by a capacity and a count of users. */
static inline uint64_t opscope__torch_text_bytes(const void *string, bool is_old)
{
    enum { BEFORE_TEXT = 24 };
    return is_old ? OPSCOPE__TORCH_FIELD(uint64_t, opscope__torch_text(string) - BEFORE_TEXT, 0)
                  : OPSCOPE__TORCH_FIELD(uint64_t, string, sizeof(char *));
}

static inline size_t opscope__torch_string_bytes(bool is_old)
{
    return is_old ? OPSCOPE__TORCH_OLD_STRING_BYTES : OPSCOPE__TORCH_STRING_BYTES;
}

static inline bool opscope__torch_has_schema(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint8_t, fn, opscope__torch.layout.has_schema) != 0;
}

/* The FunctionSchema, if it has one. */
static inline const void *opscope__torch_schema(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(void *, fn, opscope__torch.layout.name);
}

static inline uint8_t opscope__torch_scope(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint8_t, fn, opscope__torch.layout.scope);
}

static inline uint64_t opscope__torch_forward_thread_id(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint64_t, fn, opscope__torch.layout.forward_thread_id);
}

static inline bool opscope__torch_is_async(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint8_t, fn, opscope__torch.layout.is_async) != 0;
}

#endif
