/* numpy/pointers.h -- the three kinds of pointers that the bridge replaces, one file for each.
 *
 * attach: the caller has a thread state of Python and has switched recording off on its thread.
 * detach: the caller has a thread state. Their callers take turns (private/numpy.h, which also
 * lists the statuses), but the program's threads run meanwhile: without the GIL, a thread may call
 * through a pointer at any moment. So whatever a trampoline needs is complete, and published,
 * before a pointer leads to it, and is never taken back; a fault leaves an unused entry behind.
 */
#ifndef OPSCOPE_BRIDGES_NUMPY_POINTERS_H
#define OPSCOPE_BRIDGES_NUMPY_POINTERS_H

#include "base/atomics.h"
#include "base/fence.h"
#include "bridges/numpy/layout.h"
#include "opscope/record.h"
#include "private/numpy.h"

/* numpy/cost.c: the operator of that name; `other` if there is no room. */
const opscope_op *opscope__numpy_op(const char *name);
/* Measures, once per process, the extra cost of a range of NumPy beyond the recorder's own part, by
 * adding the small `array` to itself with the attached ufunc `add`; with NULL it assumes a typical
 * cost. Of the operators already interned, the one called `name` gets that cost; later ones get it
 * when they are interned. */
void opscope__numpy_measure(PyObject *add, PyObject *array, const char *name);

/* numpy/ufunc.c: the vectorcall of a ufunc object. */
int opscope__ufunc_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__ufunc_detach(void);
/* From now on the pointers of attached ufuncs are replaced only while a callback needs operators;
 * before this call they are replaced all the time. Idempotent. */
void opscope__ufunc_follow_demand(void);
/* The operator METHOD of that ufunc; NULL if the ufunc was never attached. `index` is the method's
 * own, below OPSCOPE__UFUNC_METHOD_LIMIT. */
const opscope_op *opscope__ufunc_method_op(PyObject *ufunc, int index, const char *method);

enum { OPSCOPE__UFUNC_METHOD_LIMIT = 5 };

/* Makes what attach wrote visible to each thread that follows a pointer replaced after this. The
 * thread orders nothing itself, because CPython loads the pointer. The GIL needs no fence: a thread
 * takes it after attach has let it go. */
static inline void opscope__numpy_publish(void)
{
#ifdef Py_GIL_DISABLED
    opscope__fence_heavy();
#endif
}

/* Replaces `*place` if it still is `expected`, with the order of a release. Partner: CPython's
 * plain load at each call; either pointer is complete for the call. */
#define OPSCOPE__REPLACE_POINTER(place, expected, value)                                           \
    ({                                                                                             \
        __typeof__(*(place)) expected_ = (expected);                                               \
        opscope__replace_release((place), &expected_, (value));                                    \
    })

/* numpy/builtin.c: the ml_meth of a builtin's definition. */
int opscope__builtin_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__builtin_detach(void);

/* numpy/index.c: the subscript slots of ndarray. */
int opscope__index_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__index_detach(void);

#endif
