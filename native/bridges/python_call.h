/* python_call.h -- a range around a call from Python into a C function: its inputs and its end.
 *
 * The trampolines use it after opscope__range_is_skipped returned false. Callbacks get borrowed
 * references, which are boxed into values only if a callback needs them.
 */
#ifndef OPSCOPE_BRIDGES_PYTHON_CALL_H
#define OPSCOPE_BRIDGES_PYTHON_CALL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "opscope/record.h"
#include "record/callback.h"

/* The arguments of a call in flight, in its own calling convention. */
struct opscope__python_arguments {
    PyObject *self;          /* if it is an input; else NULL */
    PyObject *const *vector; /* positional arguments, then those named in `names` */
    size_t vector_count;     /* number of positional ones */
    PyObject *names;         /* tuple or NULL */
    PyObject *tuple;         /* positional, or NULL */
    PyObject *keywords;      /* dict or NULL */
};

/* An opscope_box for an opscope__python_arguments. */
size_t opscope__python_arguments_box(void *call, opscope_value *values, size_t capacity);
/* The same for calls that raised, or whose outputs a callback needs. */
PyObject *opscope__python_range_close_rare(opscope_range *range, PyObject *result);

/* The call by which this thread verifies, while attaching, that a pointer leads to its trampoline:
 * recording is off on the thread, so its range does not fire, and the call ends there, before it
 * reaches the function. Other threads' calls reach it meanwhile. `at` identifies the pointer. */
void opscope__python_probe_begin(const void *at);
/* Whether the call arrived. */
bool opscope__python_probe_end(void);
/* In a trampoline, if the range did not fire: whether this is that call. */
bool opscope__python_probe_arrives(const void *at);

#define OPSCOPE__PYTHON_RANGE_INFO(call)                                                           \
    {.sequence_nr = -1, .inputs = opscope__python_arguments_box, .inputs_arg = (call)}

/* Counts a call down; true if no callback wants to observe it. The countdown does not depend on the
 * operator, because all operators of these bridges have one scope. */
static inline bool opscope__python_range_is_skipped(void)
{
    static const opscope_op any = {.scope = OPSCOPE_FUNCTION};
    return opscope__range_is_skipped(&any);
}

/* Whether a callback observes the range; if not, it needs no close. */
static inline bool opscope__python_range_fired(const opscope_range *range)
{
    return __builtin_expect(range->snapshot != NULL, 1);
}

/* Closes a range that fired and returns `result`: an object, or NULL with an exception set. */
static inline PyObject *opscope__python_range_close(opscope_range *range, PyObject *result)
{
    if (__builtin_expect(result == NULL || (range->fired & range->snapshot->needs_outputs) != 0,
                         0)) {
        return opscope__python_range_close_rare(range, result);
    }
    opscope__range_close_slow(range);
    return result;
}

#endif
