/* numpy_pointers.h -- the three kinds of pointers the bridge replaces, a file for each.
 *
 * attach: the caller holds the GIL and has silenced recording on its thread. detach: the caller
 * holds the GIL. Statuses as in opscope/numpy.h.
 */
#ifndef OPSCOPE_BRIDGES_NUMPY_POINTERS_H
#define OPSCOPE_BRIDGES_NUMPY_POINTERS_H

#include "bridges/numpy_layout.h"
#include "opscope/numpy.h"
#include "opscope/record.h"

/* numpy_cost.c: the operator of that name; `other` where there is no room. */
const opscope_op *opscope__numpy_op(const char *name);
/* Measures, once in a process, what a range of NumPy's costs beyond the recorder's own part, by
 * adding the small `array` to itself by the attached ufunc `add`; without them (NULL) takes a usual
 * cost. Of the operators interned before, the one called `name` is given it; those to come get it
 * as they are. */
void opscope__numpy_measure(PyObject *add, PyObject *array, const char *name);

/* numpy_ufunc.c: the vectorcall of a ufunc object. */
int opscope__ufunc_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__ufunc_detach(void);
/* From now on the pointers of attached ufuncs are replaced only while somebody wants to see
 * operators; at first they always are. Repeated, does nothing. */
void opscope__ufunc_follow_demand(void);
/* The operator METHOD of that ufunc; NULL where the ufunc was never attached. `index` is the
 * method's own, below OPSCOPE__UFUNC_METHOD_LIMIT. */
const opscope_op *opscope__ufunc_method_op(PyObject *ufunc, int index, const char *method);

enum { OPSCOPE__UFUNC_METHOD_LIMIT = 5 };

/* numpy_builtin.c: the ml_meth of a builtin's definition. */
int opscope__builtin_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__builtin_detach(void);

/* numpy_index.c: the subscript slots of ndarray. */
int opscope__index_attach(const opscope_numpy_target *target, const struct opscope__pages *pages);
void opscope__index_detach(void);

#endif
