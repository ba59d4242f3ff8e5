/* opscope/record.h -- open a range around an operator; observe the ranges of a program.
 *
 * The idea: a program opens a range when an operator starts and closes it when the operator ends.
 * An observer registers a callback, a start/end pair, for all threads (global) or for the calling
 * one (local). While no callback is registered, a range is two compares and a decrement.
 *
 * Threads: every function may be called from any thread at any time, while operators run or not.
 * The thread that opened a range closes it, unless its info says is_async. Forks: the child keeps
 * global callbacks and the forking thread's local ones. A range open at the fork is open in both
 * processes and its ends run in both; the recorder counts it in the parent.
 *
 *     static const opscope_op *op;                       // once
 *     op = opscope_op_intern("core::mm", "", OPSCOPE_FUNCTION, OPSCOPE_FORWARD);
 *     opscope_range range;                               // at every call
 *     opscope_range_open(&range, op, NULL);
 *     multiply(a, b, c);
 *     opscope_range_close(&range);
 */
#ifndef OPSCOPE_RECORD_H
#define OPSCOPE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* ---- words ------------------------------------------------------------------------------ */

/* What kind of work a range is. The order is that of PyTorch's at::RecordScope. */
typedef enum opscope_scope {
    OPSCOPE_FUNCTION = 0,
    OPSCOPE_BACKWARD_FUNCTION = 1,
    OPSCOPE_TORCHSCRIPT_FUNCTION = 2,
    OPSCOPE_KERNEL_FUNCTION_DTYPE = 3,
    OPSCOPE_CUSTOM_CLASS = 4,
    OPSCOPE_BUILD_FEATURE = 5,
    OPSCOPE_LITE_INTERPRETER = 6,
    OPSCOPE_USER_SCOPE = 7,
    OPSCOPE_STATIC_RUNTIME_OP = 8,
    OPSCOPE_STATIC_RUNTIME_MODEL = 9,
    OPSCOPE_SCOPE_COUNT = 10
} opscope_scope;

/* The part of a program's work that a range belongs to. A range of a weak phase (other, forward)
 * takes the phase of the nearest enclosing range that has a strong one. */
typedef enum opscope_phase {
    OPSCOPE_OTHER = 0,
    OPSCOPE_FORWARD = 1,
    OPSCOPE_BACKWARD = 2,
    OPSCOPE_OPTIMIZER = 3,
    OPSCOPE_DATA = 4,
    OPSCOPE_COMM = 5,
    OPSCOPE_UNKNOWN = 6, /* the enclosing range was not observed; no operator has this phase */
    OPSCOPE_PHASE_COUNT = 7
} opscope_phase;

/* An operator: interned once, never freed, compared by pointer. */
typedef struct opscope_op {
    const char *name;          /* "core::mm" */
    const char *overload_name; /* "" if it has none */
    uint32_t id;               /* dense from 1; 1 is the operator "other" */
    uint8_t phase;             /* opscope_phase; next to the id, as in a cell's key */
    uint8_t scope;             /* opscope_scope */
} opscope_op;

/* One input or output, in the form that callbacks get it. Pointers are valid during the callback
 * only. */
typedef enum opscope_value_kind {
    OPSCOPE_VALUE_NONE = 0,
    OPSCOPE_VALUE_BOOL = 1,   /* as.integer, 0 or 1 */
    OPSCOPE_VALUE_INT = 2,    /* as.integer */
    OPSCOPE_VALUE_FLOAT = 3,  /* as.real */
    OPSCOPE_VALUE_TEXT = 4,   /* as.text, NUL-terminated UTF-8 */
    OPSCOPE_VALUE_OBJECT = 5, /* as.object, of the kind in `type` */
    OPSCOPE_VALUE_LIST = 6    /* opscope_value_items reads it; an item may itself be a list */
} opscope_value_kind;

struct opscope_value;
/* Fills `values` with up to `capacity` values and returns the total number of values. */
typedef size_t (*opscope_box)(void *arg, struct opscope_value *values, size_t capacity);

typedef struct opscope_value {
    opscope_value_kind kind;
    const char *type; /* for OBJECT: "python" (a borrowed PyObject *), "tensor", ...; else NULL */
    union {
        int64_t integer;
        double real;
        const char *text;
        void *object; /* for LIST: the argument of `items` */
    } as;
    opscope_box items; /* for LIST: boxes the items; else NULL */
} opscope_value;

/* What an opener can add to the operator. Must stay valid while the range is open. */
typedef struct opscope_range_info {
    int64_t sequence_nr;        /* pairs a forward range with its backward; -1: none */
    uint64_t forward_thread_id; /* for backward ranges: the thread of the forward; 0: none */
    opscope_box inputs;         /* called only if a callback that fires needs inputs; may be NULL */
    void *inputs_arg;
    bool is_async; /* another thread may close the range */
} opscope_range_info;

/* An open range: the `fn` argument of callbacks. Callbacks read `op` and `info` directly, and the
 * rest through the functions below. */
typedef struct opscope_range {
    struct opscope__snapshot *snapshot; /* NULL: no callback fires for this range */
    const opscope_op *op;
    const opscope_range_info *info; /* may be NULL */
    uint64_t fired;                 /* private: a bit for each callback of `snapshot` */
    uint64_t handle;                /* private: set if a callback that fires needs ids */
    uint64_t failed;                /* private: opscope_range_fail was called */
    void *contexts[2]; /* private: the contexts of the callbacks that fired, in order; or a pointer
                          to them */
} opscope_range;

/* A callback. start and end return OPSCOPE_OK, or a negative code, which counts as its error. end
 * gets the *context that start stored. Operators that a callback runs are not recorded. */
typedef struct opscope_callback {
    int (*start)(const opscope_range *fn, void *user, void **context); /* may be NULL */
    int (*end)(const opscope_range *fn, void *user, void *context);    /* may be NULL */
    void *user;
    void (*drop)(void *user); /* called once, when no more calls can follow; this may be some time
                                 after the removal, with or without a wait; may be NULL */
    double sampling_prob;     /* within [0, 1]; each thread draws its own random numbers */
    uint32_t scopes;          /* bit 1 << scope for each wanted scope; 0: all */
    bool needs_inputs;
    bool needs_outputs;
    bool needs_ids;
} opscope_callback;

/* Identifies a registered callback. Handles count up from 1 and are never reused. */
typedef uint64_t opscope_handle;

/* ---- operators -------------------------------------------------------------------------- */

/* The operator with that name, overload, scope and phase; the first call makes it. The strings are
 * copied. Callbacks see a name as given. Readers of a segment show each control character of a
 * name, including a line break, as "?", and add up operators whose names then are equal; the same
 * holds for labels. ERR_FULL beyond 65,536 operators: open such a range with opscope_op_other(). */
OPSCOPE_API int opscope_op_intern(const char *name, const char *overload_name, opscope_scope scope,
                                  opscope_phase phase, const opscope_op **out);
OPSCOPE_API const opscope_op *opscope_op_other(void);
/* The operator with that id, or NULL. Ids run from 1 to opscope_op_count(). */
OPSCOPE_API const opscope_op *opscope_op_by_id(uint32_t id);
OPSCOPE_API uint32_t opscope_op_count(void);

/* ---- callbacks -------------------------------------------------------------------------- */

/* ERR_INVALID if sampling_prob is outside [0, 1] or NaN, or if a scope bit is unknown; ERR_FULL if
 * a thread would have more than 64 callbacks. */
OPSCOPE_API int opscope_add_global_callback(const opscope_callback *callback, opscope_handle *out);
OPSCOPE_API int opscope_add_thread_local_callback(const opscope_callback *callback,
                                                  opscope_handle *out);
/* These search the caller's local callbacks, then the global ones; ERR_NOT_FOUND for an unknown
 * handle. Repeating disable or enable does nothing. A removed callback still gets the end of each
 * range whose start it saw. With `wait`, remove returns once no such range is open on any thread.
 * If the caller itself is inside such a range, it removes the callback and returns
 * ERR_WOULD_DEADLOCK. */
OPSCOPE_API int opscope_remove_callback(opscope_handle handle, bool wait);
OPSCOPE_API int opscope_disable_callback(opscope_handle handle);
OPSCOPE_API int opscope_enable_callback(opscope_handle handle);
/* Removes the global callbacks and the caller's local ones. */
OPSCOPE_API void opscope_clear_callbacks(void);
/* True if a callback that is not disabled could observe a range of this thread. */
OPSCOPE_API bool opscope_has_callbacks(void);
/* The same for ranges of one scope. */
OPSCOPE_API bool opscope_has_callbacks_of(opscope_scope scope);
/* The number of failures that callbacks have reported since the process started. */
OPSCOPE_API uint64_t opscope_callback_errors(void);

/* Sets this thread's recording switch (default: on) and returns its previous value. Off silences
 * all callbacks. */
OPSCOPE_API bool opscope_recording_set(bool on);
OPSCOPE_API bool opscope_recording(void);

/* Makes sampling repeatable: this thread, and threads that start afterwards, draw from `seed`, each
 * in its own sequence, selected by its thread id. 0 returns to the operating system's
 * randomness. */
OPSCOPE_API void opscope_seed(uint64_t seed);

/* This thread's id: ids count up from 1 in order of first use, and stay the same until the thread
 * ends. */
OPSCOPE_API uint64_t opscope_thread_id(void);

/* ---- ranges, for callers that cannot hold an opscope_range ------------------------------- */

/* Opens a range in memory of the library. Returns NULL if no callback fires; there is then nothing
 * to end. opscope/range_inline.h has the inline functions opscope_range_open and
 * opscope_range_close. */
OPSCOPE_API opscope_range *opscope_range_begin(const opscope_op *op,
                                               const opscope_range_info *info);
OPSCOPE_API void opscope_range_end(opscope_range *range);
/* Marks the range as failed (its operator raised); the recorder counts it. */
OPSCOPE_API void opscope_range_fail(opscope_range *range);
OPSCOPE_API bool opscope_range_failed(const opscope_range *range);
/* Gives the range's outputs to the callbacks that need them. Call it before the close; the memory
 * that the values point at must stay valid until then. */
OPSCOPE_API void opscope_range_outputs(opscope_range *range, opscope_box outputs, void *arg);

/* ---- for callbacks ----------------------------------------------------------------------- */

/* The id of the thread that opened the range. */
OPSCOPE_API uint64_t opscope_fn_thread_id(const opscope_range *fn);
/* Unique in the process; 0 if no callback that fires for this range needs ids. */
OPSCOPE_API uint64_t opscope_fn_handle(const opscope_range *fn);

/* The inputs (in a start) or outputs (in an end), if this callback needs them; otherwise *count is
 * 0. */
OPSCOPE_API const opscope_value *opscope_fn_inputs(const opscope_range *fn, size_t *count);
OPSCOPE_API const opscope_value *opscope_fn_outputs(const opscope_range *fn, size_t *count);
/* Copies up to `capacity` items of a LIST to `items` and returns the list's length; 0 for any other
 * kind. Only for values of the range that the callback was called for. */
OPSCOPE_API size_t opscope_value_items(const opscope_value *list, opscope_value *items,
                                       size_t capacity);

OPSCOPE_END_DECLS

#include "opscope/range_inline.h"

#endif
