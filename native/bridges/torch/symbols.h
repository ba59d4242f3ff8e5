/* torch_symbols.h -- what the bridge uses of the libtorch_cpu that the process has loaded.
 *
 * Exported functions by their C++ names, offsets of fields for each version known. C++ objects that
 * cross the border: RecordFunctionCallback goes in by value and is trivially copyable, so it goes
 * as a C struct does; a start callback returns a std::unique_ptr<ObserverContext> through a pointer
 * in the first argument's place (x86-64 only); an ObserverContext has a virtual destructor and
 * nothing else.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_SYMBOLS_H
#define OPSCOPE_BRIDGES_TORCH_SYMBOLS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "opscope/record.h"

/* at::RecordFunction: looked into by offsets, never made. */
struct opscope__torch_function;

/* at::ObserverContext: the end of PyTorch's interest in it is a call of destroy_and_free. */
struct opscope__torch_context {
    const struct opscope__torch_context_type *type;
};

struct opscope__torch_context_type {
    void (*destroy)(struct opscope__torch_context *context);
    void (*destroy_and_free)(struct opscope__torch_context *context);
};

typedef struct opscope__torch_context **(*opscope__torch_start)(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn);
typedef void (*opscope__torch_end)(const struct opscope__torch_function *fn,
                                   struct opscope__torch_context *context);

/* at::RecordFunctionCallback. */
struct opscope__torch_callback {
    opscope__torch_start start;
    opscope__torch_end end;
    double sampling_prob;
    bool scopes[OPSCOPE_SCOPE_COUNT];
    bool needs_inputs;
    bool needs_outputs;
    bool needs_ids;
};

/* Offsets in at::RecordFunction, but for overload_name: in the c10::FunctionSchema it may point to.
 * A name is a std::string in place, or a pointer to a FunctionSchema, which starts with one. */
struct opscope__torch_layout {
    uint16_t thread_id;
    uint16_t scope;
    uint16_t name;
    uint16_t has_schema;
    uint16_t overload_name;
    uint16_t sequence_nr;
    uint16_t inputs;
    uint16_t input_count;
    uint16_t outputs;
    uint16_t forward_thread_id;
    uint16_t is_async;
    /* No offsets: */
};

/* __cxa_eh_globals of the Itanium C++ ABI: what a thread has in the way of exceptions. */
struct opscope__cxx_exceptions {
    void *caught;
    unsigned uncaught_count;
};

struct opscope__torch {
    struct opscope__torch_layout layout;
    uint64_t (*add_global_callback)(struct opscope__torch_callback callback);
    void (*remove_callback)(uint64_t handle);
    bool (*has_global_callbacks)(void);
    const char *(*name)(const struct opscope__torch_function *fn);
    const char *(*overload_name)(const struct opscope__torch_function *fn);
    size_t (*num_inputs)(const struct opscope__torch_function *fn);
    bool (*is_async)(const struct opscope__torch_function *fn);
    uint64_t (*thread_id)(void);
    void (*seed_sampling)(uint32_t seed); /* of the calling thread */
    const struct opscope__cxx_exceptions *(*exceptions)(void);
    /* Of an at::Tensor; 0 where all went well. NULL, all of them, where they are not exported. */
    int32_t (*tensor_is_defined)(const void *tensor, bool *out);
    int32_t (*tensor_dim)(const void *tensor, int64_t *out);
    int32_t (*tensor_sizes)(const void *tensor, const int64_t **out);
    int32_t (*tensor_dtype)(const void *tensor, int32_t *out);
    int32_t (*tensor_device_type)(const void *tensor, int32_t *out);
    pthread_mutex_t *registry; /* guards PyTorch's global callbacks */
};

/* Written while attaching, before PyTorch is given a callback; constant afterwards. */
extern struct opscope__torch opscope__torch;

/* Whether that torch.__version__ is one whose layout is known. */
bool opscope__torch_layout_of(const char *version, struct opscope__torch_layout *out);
/* Fills in all but the layout: NULL, or why that cannot be done. */
const char *opscope__torch_find(void);

#define OPSCOPE__TORCH_FIELD(type, object, offset)                                                 \
    (*(const type *)(const void *)((const char *)(object) + (offset)))

/* std::string, as libstdc++ has it: what it holds ends in a NUL. */
static inline const char *opscope__torch_text(const void *string)
{
    return OPSCOPE__TORCH_FIELD(char *, string, 0);
}

static inline bool opscope__torch_has_schema(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint8_t, fn, opscope__torch.layout.has_schema) != 0;
}

/* The FunctionSchema, where it has one. */
static inline const void *opscope__torch_schema(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(void *, fn, opscope__torch.layout.name);
}

static inline const char *opscope__torch_overload(const void *schema)
{
    return opscope__torch_text((const char *)schema + opscope__torch.layout.overload_name);
}

static inline uint8_t opscope__torch_scope(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint8_t, fn, opscope__torch.layout.scope);
}

static inline bool opscope__torch_is_async(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(uint8_t, fn, opscope__torch.layout.is_async) != 0;
}

#endif
