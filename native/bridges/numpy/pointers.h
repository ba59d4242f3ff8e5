/* numpy/pointers.h -- the kinds of pointers that only NumPy's bridge replaces, one file for each;
 * bridges/builtin.h has those of functions.
 *
 * attach: the caller has a thread state of Python and has switched recording off on its thread.
 * detach: the caller has a thread state. Their callers take turns (private/numpy.h, which also
 * lists the statuses), but the program's threads run meanwhile (bridges/pointer.h); a fault leaves
 * an unused entry behind.
 */
#ifndef OPSCOPE_BRIDGES_NUMPY_POINTERS_H
#define OPSCOPE_BRIDGES_NUMPY_POINTERS_H

#include "bridges/numpy/layout.h"
#include "bridges/pointer.h"
#include "opscope/record.h"
#include "private/numpy.h"

/* numpy/cost.c: measures, once per process, the extra cost of a range of NumPy beyond the
 * recorder's own part, by adding the small `array` to itself with the attached ufunc `add`; with
 * NULL a typical cost stays. Of the operators already interned, the one called `name` gets that
 * cost; later ones get it when they are interned (bridges/python_op.h). */
void opscope__numpy_measure(PyObject *add, PyObject *array, const char *name);

/* numpy/ufunc.c: the vectorcall of a ufunc object. */
int opscope__ufunc_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__ufunc_detach(void);
/* The same for a ufunc of the type that was verified with another one: a single new one, without
 * a map of the memory. */
int opscope__ufunc_adopt(PyObject *ufunc, const char *name);
/* From now on the pointers of attached ufuncs are replaced only while a callback needs operators;
 * before this call they are replaced all the time. Idempotent. */
void opscope__ufunc_follow_demand(void);
/* The operator METHOD of that ufunc; NULL if the ufunc was never attached. `index` is the method's
 * own, below OPSCOPE__UFUNC_METHOD_LIMIT. */
const opscope_op *opscope__ufunc_method_op(PyObject *ufunc, int index, const char *method);

enum { OPSCOPE__UFUNC_METHOD_LIMIT = 5 };

/* numpy/ufunc_maker.c: the functions that make ufuncs, in the table behind NumPy's `capsule`; what
 * they make from now on is attached. `ufunc` is any ufunc that is attached. */
int opscope__ufunc_makers_attach(PyObject *capsule, PyObject *ufunc,
                                 const struct opscope__pages *pages);
void opscope__ufunc_makers_detach(void);
/* Attaches a ufunc of that library, and names it after the library's path. */
int opscope__ufunc_adopt_from(PyObject *ufunc, const char *library);

/* numpy/index.c: the subscript slots of ndarray. */
int opscope__index_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__index_detach(void);

#endif
