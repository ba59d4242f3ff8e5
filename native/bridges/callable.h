/* callable.h -- the calls of objects whose type has a tp_call of its own: functions that NumPy's
 * f2py has wrapped, such as those of BLAS and LAPACK in SciPy, functions of a library that ctypes
 * has loaded, and what Numba has compiled.
 *
 * attach: the caller holds the GIL and has switched recording off on its thread. detach: the caller
 * holds the GIL.
 */
#ifndef OPSCOPE_BRIDGES_CALLABLE_H
#define OPSCOPE_BRIDGES_CALLABLE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "bridges/pages.h"

/* Whether its type is one of those. */
bool opscope__is_callable(PyObject *object);
/* Attaches all objects of the type of `object`: f2py makes a type for each module, ctypes one for
 * each library. Their operators are called `prefix` and the object's `__name__`. `library` is the
 * file that the type's C function must be in; NULL: any.
 *
 * ERR_UNSUPPORTED: an unexpected layout; ERR_INVALID: it is in another library; ERR_BUSY: attached
 * before; ERR_FULL: too many types. */
int opscope__callable_attach(PyObject *object, const char *prefix, uint32_t owner,
                             const char *library, const struct opscope__pages *pages);
void opscope__callable_detach(uint32_t owner);

#endif
