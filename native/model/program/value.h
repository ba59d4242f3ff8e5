/* model/program/value.h -- the values that a running program computes with.
 *
 * A value is a number, or a reference to a tensor, text, list, tuple or task. Texts, lists and
 * tuples belong to one run, whose heap counts their memory: they are used by one thread at a time,
 * so that references are counted without atomics. The texts of constants are shared by all runs:
 * they are never counted and live as long as the program.
 *
 * No list contains itself, because its type would have to contain itself. So a release is never
 * deeper than a type.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_VALUE_H
#define OPSCOPE_MODEL_PROGRAM_VALUE_H

#include "opscope/tensor.h"

enum opscope__value_kind {
    OPSCOPE__VALUE_NONE,
    OPSCOPE__VALUE_BOOL,
    OPSCOPE__VALUE_INT,
    OPSCOPE__VALUE_FLOAT,
    OPSCOPE__VALUE_DTYPE,  /* as.integer: opscope_dtype */
    OPSCOPE__VALUE_TENSOR, /* from here on a value holds a reference */
    OPSCOPE__VALUE_TEXT,
    OPSCOPE__VALUE_LIST,
    OPSCOPE__VALUE_TUPLE,
    OPSCOPE__VALUE_FUTURE /* of a task (task.h) */
};

struct opscope__value {
    uint8_t kind; /* enum opscope__value_kind */
    union {
        int64_t integer; /* of a BOOL 0 or 1 */
        double real;
        opscope_tensor *tensor;
        struct opscope__text *text;
        struct opscope__sequence *sequence;
        struct opscope__future *future;
    } as;
};

/* The memory of one run's texts, lists and tuples. Zero is one without a limit.
 *
 * A task's heap is below the heap of the run that forked it, and shares its limit. One thread uses
 * a heap; others read `live_bytes` of the topmost, and change its `below_bytes`, both atomically.
 */
struct opscope__heap {
    size_t live_bytes;
    size_t limit_bytes;          /* 0: none; of the topmost and all below it together */
    size_t below_bytes;          /* of all below, if there is a limit */
    struct opscope__heap *above; /* the topmost; NULL: this is it */
};

/* Zeroed memory becomes a heap below `heap`, which must outlive it. */
void opscope__heap_below(struct opscope__heap *below, struct opscope__heap *heap);
/* For memory beside lists and texts. False: reported. */
bool opscope__heap_take(struct opscope__heap *heap, size_t bytes);
void opscope__heap_give(struct opscope__heap *heap, size_t bytes);

/* Never changed once made. */
struct opscope__text {
    uint32_t references;
    size_t bytes;
    size_t characters;
    struct opscope__heap *heap;
    char at[]; /* valid UTF-8: `bytes` bytes and a NUL */
};

/* A task, whose run keeps it until no value refers to it (task.c). */
struct opscope__future {
    uint32_t references;
};

/* A list or a tuple. */
struct opscope__sequence {
    uint32_t references;
    size_t count;
    size_t room;
    struct opscope__heap *heap;
    struct opscope__value *items; /* owned */
};

#define opscope__value_none ((struct opscope__value){OPSCOPE__VALUE_NONE, {.integer = 0}})
#define opscope__value_bool(is) ((struct opscope__value){OPSCOPE__VALUE_BOOL, {.integer = (is)}})
#define opscope__value_int(number)                                                                 \
    ((struct opscope__value){OPSCOPE__VALUE_INT, {.integer = (number)}})
#define opscope__value_float(number)                                                               \
    ((struct opscope__value){OPSCOPE__VALUE_FLOAT, {.real = (number)}})
#define opscope__value_dtype(dtype)                                                                \
    ((struct opscope__value){OPSCOPE__VALUE_DTYPE, {.integer = (dtype)}})
#define opscope__value_tensor(core)                                                                \
    ((struct opscope__value){OPSCOPE__VALUE_TENSOR, {.tensor = (core)}})
#define opscope__value_text(made) ((struct opscope__value){OPSCOPE__VALUE_TEXT, {.text = (made)}})
#define opscope__value_list(made)                                                                  \
    ((struct opscope__value){OPSCOPE__VALUE_LIST, {.sequence = (made)}})
#define opscope__value_tuple(made)                                                                 \
    ((struct opscope__value){OPSCOPE__VALUE_TUPLE, {.sequence = (made)}})
#define opscope__value_future(made)                                                                \
    ((struct opscope__value){OPSCOPE__VALUE_FUTURE, {.future = (made)}})

OPSCOPE_API void opscope__value_drop(const struct opscope__value *value);
OPSCOPE_API void opscope__value_hold(const struct opscope__value *value);

/* Gives up the reference of a value. */
static inline void opscope__value_release(const struct opscope__value *value)
{
    if (value->kind >= OPSCOPE__VALUE_TENSOR) {
        opscope__value_drop(value);
    }
}

/* The value with one reference more. */
static inline struct opscope__value opscope__value_retain(const struct opscope__value *value)
{
    if (value->kind >= OPSCOPE__VALUE_TENSOR) {
        opscope__value_hold(value);
    }
    return *value;
}

/* A text with these bytes, which are valid UTF-8; with `bytes` NULL they are still to be written,
 * and opscope__text_count to be called. NULL: reported. */
OPSCOPE_API struct opscope__text *opscope__text_new(struct opscope__heap *heap, const char *bytes,
                                                    size_t size);
void opscope__text_count(struct opscope__text *text);
/* A text that is never counted; to be freed with free(). */
struct opscope__text *opscope__text_forever(const char *bytes, size_t size);
/* The bytes before a text's character. */
size_t opscope__text_offset(const struct opscope__text *text, size_t character);

/* A list or tuple without items and with room for so many. NULL: reported. */
OPSCOPE_API struct opscope__sequence *opscope__sequence_new(struct opscope__heap *heap,
                                                            size_t room);
/* Makes room for so many items. Returns a status. */
int opscope__sequence_reserve(struct opscope__sequence *sequence, size_t room);
/* Adds an item at the end, whose reference it takes, also on failure. Returns a status. */
OPSCOPE_API int opscope__sequence_push(struct opscope__sequence *sequence,
                                       struct opscope__value item);
/* Adds further references to these items at the end. */
int opscope__sequence_push_all(struct opscope__sequence *sequence,
                               const struct opscope__value *items, size_t count);
/* Gives up one reference; NULL is allowed. */
OPSCOPE_API void opscope__sequence_release(struct opscope__sequence *sequence);

/* As Python compares: NaN is equal to nothing. For numbers, texts, dtypes and lists of these. */
bool opscope__value_equal(const struct opscope__value *one, const struct opscope__value *other);

#endif
