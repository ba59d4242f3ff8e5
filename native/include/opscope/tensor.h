/* opscope/tensor.h -- the bundled tensor core: strided tensors whose every operator is a range.
 *
 * The idea: a tensor is sizes, strides and an offset over a reference-counted storage; a view
 * shares its storage. An operator is one entry of a table: a schema, a function, a backward. A call
 * opens exactly one range, computes, and records a node on the tape if an input requires grad.
 *
 * Threads: any number of threads may share and read a tensor; callers must synchronise writes.
 * Forks: tensors stay valid in the child, which starts with an empty fork pool.
 *
 *     opscope_tensor *a, *b, *sum;
 *     opscope_tensor_empty(2, (int64_t[]){3, 4}, OPSCOPE_FLOAT32, NULL, &a);
 *     ...
 *     opscope_argument args[] = {{OPSCOPE_ARGUMENT_TENSOR, .as.tensor = a},
 *                                {OPSCOPE_ARGUMENT_TENSOR, .as.tensor = b}};
 *     int status = opscope_call(opscope_operator_find("core::add"), args, 2, &sum);
 */
#ifndef OPSCOPE_TENSOR_H
#define OPSCOPE_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/record.h"

OPSCOPE_BEGIN_DECLS

enum { OPSCOPE_DIM_LIMIT = 16, OPSCOPE_ARGUMENT_LIMIT = 12, OPSCOPE_OUTPUT_LIMIT = 4 };

typedef enum opscope_dtype {
    OPSCOPE_FLOAT32 = 0,
    OPSCOPE_FLOAT64 = 1,
    OPSCOPE_INT32 = 2,
    OPSCOPE_INT64 = 3,
    OPSCOPE_UINT8 = 4,
    OPSCOPE_BOOL = 5,
    OPSCOPE_BFLOAT16 = 6, /* storage and conversion only */
    OPSCOPE_FLOAT16 = 7,  /* storage and conversion only */
    OPSCOPE_DTYPE_COUNT = 8
} opscope_dtype;

OPSCOPE_API const char *opscope_dtype_name(opscope_dtype dtype); /* "float32" */
OPSCOPE_API size_t opscope_dtype_bytes(opscope_dtype dtype);
OPSCOPE_API bool opscope_dtype_is_floating(opscope_dtype dtype);
/* The dtype in which two tensors of these dtypes compute, as in NumPy and PyTorch. */
OPSCOPE_API opscope_dtype opscope_dtype_promote(opscope_dtype a, opscope_dtype b);

/* ---- errors ------------------------------------------------------------------------------ */

/* The kind of a failure, for languages with exceptions. */
typedef enum opscope_error_kind {
    OPSCOPE_ERROR_RUNTIME = 0,
    OPSCOPE_ERROR_VALUE = 1, /* sizes or numbers that do not match or are out of range */
    OPSCOPE_ERROR_TYPE = 2,  /* a wrong dtype or kind of argument */
    OPSCOPE_ERROR_INDEX = 3, /* a dimension or index out of range */
    OPSCOPE_ERROR_MEMORY = 4,
    /* Of graphs that run: as Python's exceptions of these names. */
    OPSCOPE_ERROR_ASSERTION = 5,
    OPSCOPE_ERROR_OVERFLOW = 6,
    OPSCOPE_ERROR_ZERO_DIVISION = 7
} opscope_error_kind;

/* The error text of this thread's last failed call of the tensor core: operator, shapes, and what
 * the call expects. Valid until the thread's next failure. */
OPSCOPE_API const char *opscope_tensor_error(void);
OPSCOPE_API opscope_error_kind opscope_tensor_error_kind(void);
/* For operators: sets that text (printf's format); returns OPSCOPE_ERR_INVALID, or for
 * OPSCOPE_ERROR_MEMORY OPSCOPE_ERR_NO_MEMORY. */
OPSCOPE_API int opscope_tensor_fail(opscope_error_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- storage ------------------------------------------------------------------------------ */

/* A source of memory. `allocate` returns memory aligned to 64 bytes, or NULL. */
typedef struct opscope_allocator {
    const char *name;
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *data, size_t bytes);
    void *user;
} opscope_allocator;

typedef struct opscope_allocator_stats {
    uint64_t allocated_bytes; /* total, never decreases */
    uint64_t live_bytes;
    uint64_t peak_bytes;
    uint64_t allocation_count;
} opscope_allocator_stats;

OPSCOPE_API const opscope_allocator *opscope_allocator_cpu(void); /* aligned_alloc and free */
OPSCOPE_API const opscope_allocator *opscope_allocator_caching(
    void); /* keeps freed blocks by size */
/* Registers the allocator under its name. It must stay valid for ever. Fails if another allocator
 * has the name, or beyond 16 allocators. */
OPSCOPE_API int opscope_allocator_register(const opscope_allocator *allocator);
/* The registered allocator of that name ("cpu", "caching", ...), or NULL. */
OPSCOPE_API const opscope_allocator *opscope_allocator_find(const char *name);
/* Sets the allocator for tensors created without one; process-wide. NULL: restores the first
 * default. */
OPSCOPE_API void opscope_allocator_set_default(const opscope_allocator *allocator);
OPSCOPE_API const opscope_allocator *opscope_allocator_default(void);
/* Beyond 15, allocators that are not registered share one set of counts. */
OPSCOPE_API void opscope_allocator_read_stats(const opscope_allocator *allocator,
                                              opscope_allocator_stats *out);
/* Sets the peak to the current live_bytes. */
OPSCOPE_API void opscope_allocator_reset_peak(const opscope_allocator *allocator);

typedef struct opscope_storage opscope_storage;

/* ---- tensors ------------------------------------------------------------------------------ */

typedef struct opscope_tensor opscope_tensor;

/* Creates a contiguous tensor with one reference. allocator NULL: the default one. */
OPSCOPE_API int opscope_tensor_empty(int dims, const int64_t *sizes, opscope_dtype dtype,
                                     const opscope_allocator *allocator, opscope_tensor **out);
/* Creates a tensor over the caller's memory; the core calls `release(user)` when the last view is
 * gone. Strides are in elements, of any sign. Writing to a read-only tensor fails. */
OPSCOPE_API int opscope_tensor_from_memory(void *data, int dims, const int64_t *sizes,
                                           const int64_t *strides, opscope_dtype dtype,
                                           bool read_only, void (*release)(void *user), void *user,
                                           opscope_tensor **out);
/* Creates a view of `base`: the same storage with other sizes, strides (in elements) and offset (in
 * elements, from the start of the storage). Fails if it does not lie inside the storage. */
OPSCOPE_API int opscope_tensor_as_strided(opscope_tensor *base, int dims, const int64_t *sizes,
                                          const int64_t *strides, int64_t offset,
                                          opscope_tensor **out);
OPSCOPE_API opscope_tensor *opscope_tensor_retain(opscope_tensor *tensor);
OPSCOPE_API void opscope_tensor_release(opscope_tensor *tensor); /* NULL is allowed */

OPSCOPE_API int opscope_tensor_dims(const opscope_tensor *tensor);
OPSCOPE_API const int64_t *opscope_tensor_sizes(const opscope_tensor *tensor);
OPSCOPE_API const int64_t *opscope_tensor_strides(const opscope_tensor *tensor);
OPSCOPE_API int64_t opscope_tensor_offset(const opscope_tensor *tensor);
OPSCOPE_API int64_t opscope_tensor_count(const opscope_tensor *tensor); /* elements */
OPSCOPE_API opscope_dtype opscope_tensor_dtype(const opscope_tensor *tensor);
OPSCOPE_API void *opscope_tensor_data(const opscope_tensor *tensor); /* of the first element */
OPSCOPE_API void *opscope_tensor_storage_data(const opscope_tensor *tensor);
OPSCOPE_API size_t opscope_tensor_storage_bytes(const opscope_tensor *tensor);
OPSCOPE_API bool opscope_tensor_is_contiguous(const opscope_tensor *tensor);
OPSCOPE_API bool opscope_tensor_is_read_only(const opscope_tensor *tensor);
/* Whether the caller's reference is the only one to the tensor, and no other tensor shares its
 * storage: what writes to its memory changes nothing else. */
OPSCOPE_API bool opscope_tensor_is_alone(const opscope_tensor *tensor);
/* Increases with every write in place to the storage, through any view. */
OPSCOPE_API uint64_t opscope_tensor_version(const opscope_tensor *tensor);

/* ---- calling operators -------------------------------------------------------------------- */

typedef enum opscope_argument_kind {
    OPSCOPE_ARGUMENT_NONE = 0,
    OPSCOPE_ARGUMENT_TENSOR = 1,
    OPSCOPE_ARGUMENT_TENSORS = 2, /* as.tensors, count */
    OPSCOPE_ARGUMENT_INT = 3,     /* ints and dtypes */
    OPSCOPE_ARGUMENT_FLOAT = 4,
    OPSCOPE_ARGUMENT_INTS = 5, /* as.integers, count */
    OPSCOPE_ARGUMENT_TEXT = 6,
    OPSCOPE_ARGUMENT_BOOL = 7 /* as.integer; an INT of 0 or 1 is also accepted */
} opscope_argument_kind;

typedef struct opscope_argument {
    opscope_argument_kind kind;
    uint32_t count;
    union {
        opscope_tensor *tensor;
        opscope_tensor *const *tensors;
        int64_t integer;
        double real;
        const int64_t *integers;
        const char *text;
    } as;
} opscope_argument;

typedef struct opscope_operator opscope_operator;

/* The operator of that name ("core::add"), or NULL. An operator that can work in place has a second
 * one, "core::add_", which writes its first argument and returns a reference to it. */
OPSCOPE_API const opscope_operator *opscope_operator_find(const char *name);
OPSCOPE_API size_t opscope_operator_count(void);
OPSCOPE_API const opscope_operator *opscope_operator_at(size_t index);
OPSCOPE_API const char *opscope_operator_name(const opscope_operator *op);
/* Calls the operator: one range. `arguments` follow the schema; missing ones at the end take its
 * defaults. A Tensor parameter of an elementwise operator also takes a number, which affects the
 * result's dtype only across categories. Outputs are new references. */
OPSCOPE_API int opscope_call(const opscope_operator *op, const opscope_argument *arguments,
                             size_t count, opscope_tensor **outputs);

typedef struct opscope_tensor_list {
    opscope_tensor **tensors;
    size_t count;
} opscope_tensor_list;

/* The same for an operator with any number of outputs ("-> Tensor[]"). The caller owns the list and
 * frees it with opscope_tensor_list_release. */
OPSCOPE_API int opscope_call_list(const opscope_operator *op, const opscope_argument *arguments,
                                  size_t count, opscope_tensor_list *out);
OPSCOPE_API void opscope_tensor_list_release(opscope_tensor_list *list);
/* The same, but writes the results into tensors of the caller, one for each output, with the
 * output's sizes and a dtype that can hold it. A tensor without elements is replaced by a new one
 * of the right sizes. Fails if it would have to record a gradient. */
OPSCOPE_API int opscope_call_out(const opscope_operator *op, const opscope_argument *arguments,
                                 size_t count, opscope_tensor **into);

/* ---- matrix products ----------------------------------------------------------------------- */

/* Takes sgemm and dgemm from a BLAS: opens `library_path` with dlopen; its CBLAS names are prefix +
 * "cblas_sgemm" + suffix; a suffix that ends in "64_" means 64-bit integers. Before this call,
 * matrix products are plain loops. Fails if products that it tries come out wrong. */
OPSCOPE_API int opscope_blas_load(const char *library_path, const char *prefix, const char *suffix);

/* Seeds this process's random operators, which are repeatable from here on. */
OPSCOPE_API void opscope_tensor_seed(uint64_t seed);
/* Draws 64 bits from that sequence, as a seed for another one. */
OPSCOPE_API uint64_t opscope_tensor_draw_seed(void);

OPSCOPE_END_DECLS

#endif
