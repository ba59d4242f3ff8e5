/* opscope/operator.h -- operators and allocators in a shared library of your own.
 *
 * The idea: compile the library against the installed headers (opscope.get_include()) and link it
 * with nothing. opscope.tensor.load_library(path) opens it and calls its one entry point with a
 * table of the core's functions; the entry point registers the library's operators through that
 * table. Programs then call, record and differentiate them like the built-in ones.
 *
 * Threads: operators run on any thread, several at a time. Only the entry point may register, while
 * it runs. A library is never unloaded. Forks: nothing to do.
 *
 *     static const opscope_core *core;
 *     static int forward(opscope_operator_call *call, const opscope_argument *arguments,
 *                        opscope_tensor **outputs) { ... }
 *     OPSCOPE_OPERATOR_LIBRARY(given)
 *     {
 *         core = given;
 *         return core->operator_register(&(opscope_operator_spec){
 *             .struct_bytes = sizeof(opscope_operator_spec),
 *             .schema = "mine::twice(Tensor self) -> Tensor", .forward = forward});
 *     }
 */
#ifndef OPSCOPE_OPERATOR_H
#define OPSCOPE_OPERATOR_H

#include "opscope/tensor.h"

OPSCOPE_BEGIN_DECLS

/* Increases when libraries compiled earlier can no longer be loaded. Tables only grow at their end,
 * which needs no new version: `struct_bytes` says which fields a table has. */
enum { OPSCOPE_OPERATOR_ABI = 1 };

/* ---- what an operator is ------------------------------------------------------------------- */

/* A call in flight. */
typedef struct opscope__call opscope_operator_call;

/* The arguments of backward. New fields are only ever added at the end. */
typedef struct opscope__backward {
    const opscope_argument
        *arguments; /* the arguments of the forward call, with defaults filled in. A tensor outside
                       saves_inputs has only sizes and dtype */
    size_t argument_count;
    opscope_tensor *const *inputs; /* only the tensor arguments, in order, with lists flattened;
                                      NULL for one that was absent or a number */
    size_t input_count;
    opscope_tensor *const
        *saved; /* the outputs in saves_outputs, then the tensors that forward saved */
    size_t saved_count;
    opscope_tensor *const *gradients; /* of the outputs; NULL: zero */
    const bool *wanted;               /* for each of `inputs`: true if its gradient is needed */
} opscope_operator_backward;

/* The library must keep the texts; the core copies the rest. A field of zero is absent. */
typedef struct opscope_operator_spec {
    size_t struct_bytes; /* sizeof(opscope_operator_spec) */
    /* "mine::scale(Tensor self, Scalar factor=2) -> Tensor": the name, then the parameters and
     * outputs in PyTorch's notation. The namespace must not be "core". The name must not end in
     * "Backward", because that suffix names the backward node: "mine::scale" has
     * "mine::ScaleBackward", "mine::scale_rows" has "mine::ScaleRowsBackward". Types: Tensor,
     * Tensor?, Tensor[], int, int?, int[], int[]?, float, float?, bool, Scalar, dtype?, str.
     * Several outputs: "-> (Tensor values, Tensor indices)". */
    const char *schema;
    const char *doc;
    const char *samples; /* Python expressions, one per line: the arguments of sample calls */
    /* Computes the outputs, as new references. All arguments are present and of the kinds in the
     * schema. Runs inside the operator's range, with grad mode off. Returns 0, or the result of
     * core->fail. */
    int (*forward)(opscope_operator_call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs);
    /* NULL: not differentiable. Stores one new reference for each of `inputs`, or NULL if it is not
     * wanted. Call operators with core->call here, so that each of them is a range. */
    int (*backward)(const opscope_operator_backward *backward, opscope_tensor **gradients);
    uint32_t saves_inputs;  /* bit i: backward reads the data of input i */
    uint32_t saves_outputs; /* bit i: backward reads output i */
    bool is_view;           /* the output shares the storage of the first argument */
    bool takes_numbers;     /* a Tensor parameter also takes a number */
} opscope_operator_spec;

/* ---- the core ------------------------------------------------------------------------------- */

/* The functions of opscope/tensor.h under the same names, and functions that only operators
 * need. */
typedef struct opscope_core {
    size_t struct_bytes;
    /* For the entry point. Fails if the name is taken or the schema does not parse. */
    int (*operator_register)(const opscope_operator_spec *spec);
    int (*allocator_register)(const opscope_allocator *allocator);
    /* For forward and backward: sets the error text (printf's format). */
    int (*fail)(opscope_error_kind kind, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    /* For forward. */
    const char *(*call_name)(const opscope_operator_call *call);
    void (*call_save)(opscope_operator_call *call, opscope_tensor *tensor);

    const opscope_operator *(*operator_find)(const char *name);
    int (*call)(const opscope_operator *op, const opscope_argument *arguments, size_t count,
                opscope_tensor **outputs);

    int (*tensor_empty)(int dims, const int64_t *sizes, opscope_dtype dtype,
                        const opscope_allocator *allocator, opscope_tensor **out);
    int (*tensor_from_memory)(void *data, int dims, const int64_t *sizes, const int64_t *strides,
                              opscope_dtype dtype, bool read_only, void (*release)(void *user),
                              void *user, opscope_tensor **out);
    int (*tensor_as_strided)(opscope_tensor *base, int dims, const int64_t *sizes,
                             const int64_t *strides, int64_t offset, opscope_tensor **out);
    opscope_tensor *(*tensor_retain)(opscope_tensor *tensor);
    void (*tensor_release)(opscope_tensor *tensor);
    int (*tensor_dims)(const opscope_tensor *tensor);
    const int64_t *(*tensor_sizes)(const opscope_tensor *tensor);
    const int64_t *(*tensor_strides)(const opscope_tensor *tensor);
    int64_t (*tensor_offset)(const opscope_tensor *tensor);
    int64_t (*tensor_count)(const opscope_tensor *tensor);
    opscope_dtype (*tensor_dtype)(const opscope_tensor *tensor);
    void *(*tensor_data)(const opscope_tensor *tensor);
    bool (*tensor_is_contiguous)(const opscope_tensor *tensor);
    bool (*tensor_is_read_only)(const opscope_tensor *tensor);

    const char *(*dtype_name)(opscope_dtype dtype);
    size_t (*dtype_bytes)(opscope_dtype dtype);
    bool (*dtype_is_floating)(opscope_dtype dtype);
    opscope_dtype (*dtype_promote)(opscope_dtype a, opscope_dtype b);
} opscope_core;

/* ---- the library's side ------------------------------------------------------------------------ */

#ifdef __cplusplus
#define OPSCOPE__ENTRY extern "C" __attribute__((visibility("default")))
#else
#define OPSCOPE__ENTRY extern __attribute__((visibility("default")))
#endif

/* Precedes the body of the entry point; `core` is its parameter. If the entry point does not return
 * 0, none of its registrations take effect. */
#define OPSCOPE_OPERATOR_LIBRARY(core)                                                             \
    OPSCOPE__ENTRY const uint32_t opscope_operators_abi;                                           \
    OPSCOPE__ENTRY int opscope_operators_init(const opscope_core *core);                           \
    const uint32_t opscope_operators_abi = OPSCOPE_OPERATOR_ABI;                                   \
    int opscope_operators_init(const opscope_core *core)

/* ---- the program's side ------------------------------------------------------------------------ */

/* The library's operators, in the order of their registration. They belong to the core and are
 * never freed. */
typedef struct opscope_operator_library {
    const opscope_operator *const *operators;
    size_t count;
} opscope_operator_library;

/* Loads the library; for a library that is already loaded, only fills in *out. Any thread;
 * libraries load one after another. */
OPSCOPE_API int opscope_operators_load(const char *path, opscope_operator_library *out);

OPSCOPE_END_DECLS

#endif
