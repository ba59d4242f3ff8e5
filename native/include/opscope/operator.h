/* opscope/operator.h -- operators, and allocators, of a shared library of your own.
 *
 * The idea: the library is compiled against the installed headers (opscope.get_include()) and
 * linked with nothing. opscope.tensor.load_library(path) opens it and calls its one entry point
 * with a table of the core's functions, through which it registers what it has. Its operators are
 * then called, recorded and differentiated like the built-in ones.
 *
 * Threads: operators run on any thread, several at a time. Registering is for the entry point,
 * while it runs. A library is never unloaded. Forks: nothing to do.
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

/* Goes up when what was compiled before cannot be loaded any more. Tables only grow at their end,
 * which needs no other version: their `struct_bytes` says what is there. */
enum { OPSCOPE_OPERATOR_ABI = 1 };

/* ---- what an operator is ------------------------------------------------------------------- */

/* A call in flight. */
typedef struct opscope__call opscope_operator_call;

/* What backward is given. Fields are only ever added at the end. */
typedef struct opscope__backward {
    const opscope_argument
        *arguments; /* those of the forward call, defaults filled in. A tensor that
                       saves_inputs does not name has sizes and dtype only */
    size_t argument_count;
    opscope_tensor *const *inputs; /* the tensor arguments alone, in order, lists laid flat; NULL
                                      for one that was absent or a number */
    size_t input_count;
    opscope_tensor *const *saved; /* outputs that saves_outputs names, then what forward saved */
    size_t saved_count;
    opscope_tensor *const *gradients; /* of the outputs; NULL: zero */
    const bool *wanted;               /* for each of `inputs`: its gradient is asked for */
} opscope_operator_backward;

/* Texts must stay; the rest is copied. What is zero is absent. */
typedef struct opscope_operator_spec {
    size_t struct_bytes; /* sizeof(opscope_operator_spec) */
    /* "mine::scale(Tensor self, Scalar factor=2) -> Tensor": its name, with a namespace that is not
     * "core" and no "Backward" at its end, for so its node of backward is called
     * ("mine::ScaleBackward", of "mine::scale_rows" "mine::ScaleRowsBackward"); its parameters and
     * outputs in PyTorch's notation. Types: Tensor, Tensor?, Tensor[], int, int?, int[], int[]?,
     * float, float?, bool, Scalar, dtype?, str. Several outputs:
     * "-> (Tensor values, Tensor indices)". */
    const char *schema;
    const char *doc;
    const char *samples; /* Python expressions, one a line, each the arguments of a sample call */
    /* Computes; outputs are new references. The arguments are there in full, of the kinds the
     * schema says. Runs inside the operator's range, grad mode off. Returns 0, or what core->fail
     * gave. */
    int (*forward)(opscope_operator_call *call, const opscope_argument *arguments,
                   opscope_tensor **outputs);
    /* NULL: not differentiable. Leaves one new reference for each of `inputs`, NULL where not
     * wanted. Is best written with core->call, so that what it does is ranges. */
    int (*backward)(const opscope_operator_backward *backward, opscope_tensor **gradients);
    uint32_t saves_inputs;  /* bit i: backward reads the data of input i */
    uint32_t saves_outputs; /* bit i: backward reads output i */
    bool is_view;           /* its output shares the storage of the first argument */
    bool takes_numbers;     /* a Tensor slot takes a number too */
} opscope_operator_spec;

/* ---- the core ------------------------------------------------------------------------------- */

/* The functions of opscope/tensor.h by their names there, and what only operators need. */
typedef struct opscope_core {
    size_t struct_bytes;
    /* Within the entry point. An error where the name is taken or the schema does not parse. */
    int (*operator_register)(const opscope_operator_spec *spec);
    int (*allocator_register)(const opscope_allocator *allocator);
    /* For forward and backward: what went wrong (printf's format). */
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

/* Stands before the body of the entry point; `core` is its parameter. Where it does not return 0,
 * nothing of what it registered is there. */
#define OPSCOPE_OPERATOR_LIBRARY(core)                                                             \
    OPSCOPE__ENTRY const uint32_t opscope_operators_abi;                                           \
    OPSCOPE__ENTRY int opscope_operators_init(const opscope_core *core);                           \
    const uint32_t opscope_operators_abi = OPSCOPE_OPERATOR_ABI;                                   \
    int opscope_operators_init(const opscope_core *core)

/* ---- the program's side ------------------------------------------------------------------------ */

/* The library's operators, in the order it registered them; of the core, for ever. */
typedef struct opscope_operator_library {
    const opscope_operator *const *operators;
    size_t count;
} opscope_operator_library;

/* Loads it, or, where it is loaded already, only says what it has. Any thread; libraries load one
 * after another. */
OPSCOPE_API int opscope_operators_load(const char *path, opscope_operator_library *out);

OPSCOPE_END_DECLS

#endif
