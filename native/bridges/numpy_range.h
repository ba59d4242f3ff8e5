/* numpy_range.h -- a range around a call into NumPy: what it says of inputs, how it ends.
 *
 * Used by the trampolines once opscope__range_is_skipped said that somebody looks. What callbacks
 * get to see are borrowed references, made into values only when one of them asks.
 */
#ifndef OPSCOPE_BRIDGES_NUMPY_RANGE_H
#define OPSCOPE_BRIDGES_NUMPY_RANGE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "opscope/record.h"
#include "record/callback.h"

/* The arguments of a call in flight, in the calling convention it came by. */
struct opscope__call {
    PyObject *self;          /* where it is an input; else NULL */
    PyObject *const *vector; /* positional, then those named by `names` */
    size_t vector_count;     /* of the positional ones */
    PyObject *names;         /* tuple or NULL */
    PyObject *tuple;         /* positional, or NULL */
    PyObject *keywords;      /* dict or NULL */
};

/* An opscope_box over an opscope__call. */
size_t opscope__call_box(void *call, opscope_value *values, size_t capacity);
/* The same for the calls where a callback asks for outputs, or that raised. */
PyObject *opscope__call_close_rare(opscope_range *range, PyObject *result);

#define OPSCOPE__CALL_INFO(call)                                                                   \
    {.sequence_nr = -1, .inputs = opscope__call_box, .inputs_arg = (call)}

/* Counts a call down; true where nobody wants to look at it. Which operator it is does not matter:
 * all of the bridge have one scope. */
static inline bool opscope__call_is_skipped(void)
{
    static const opscope_op any = {.scope = OPSCOPE_FUNCTION};
    return opscope__range_is_skipped(&any);
}

/* Closes the range that `result` ends, NULL with an exception set or an object, and returns it. */
static inline PyObject *opscope__call_close(opscope_range *range, PyObject *result)
{
    if (range->firing == NULL) {
        return result;
    }
    if (__builtin_expect(result == NULL || (range->fired & range->firing->needs_outputs) != 0, 0)) {
        return opscope__call_close_rare(range, result);
    }
    opscope__range_close_slow(range);
    return result;
}

#endif
