/* fortran.h -- the calls of functions that NumPy's f2py has wrapped, such as those of BLAS and
 * LAPACK in SciPy.
 *
 * attach: the caller holds the GIL and has switched recording off on its thread. detach: the caller
 * holds the GIL.
 */
#ifndef OPSCOPE_BRIDGES_FORTRAN_H
#define OPSCOPE_BRIDGES_FORTRAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "bridges/pages.h"

bool opscope__is_fortran(PyObject *object);
/* Attaches all functions of the module that `object`, one of them, belongs to: each such module has
 * a type of its own. Their operators are called `prefix` and the function's name. `library` is the
 * module's file.
 *
 * ERR_UNSUPPORTED: an unexpected layout; ERR_INVALID: it is in another library; ERR_BUSY: attached
 * before; ERR_FULL: too many modules. */
int opscope__fortran_attach(PyObject *object, const char *prefix, uint32_t owner,
                            const char *library, const struct opscope__pages *pages);
void opscope__fortran_detach(uint32_t owner);

#endif
