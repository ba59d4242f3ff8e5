/* builtin.h -- the calls of functions and methods that extension modules define, whatever the
 * framework: builtins, methods of their types, Cython's functions.
 *
 * attach: the caller holds the GIL and has switched recording off on its thread. detach: the caller
 * holds the GIL.
 */
#ifndef OPSCOPE_BRIDGES_BUILTIN_H
#define OPSCOPE_BRIDGES_BUILTIN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "bridges/pages.h"
#include "opscope/record.h"

/* The operator of a call on `self`, for a function whose operator depends on its object; NULL: the
 * function's own. `index` is the one of opscope__builtin_attach. */
typedef const opscope_op *(*opscope__op_of_self)(PyObject *self, int index, const char *method);

/* Replaces the pointer to the C function behind `object`; its calls are ranges of the operator
 * `name`. `owner` names all pointers of one bridge for the detach. `library` is the file that the C
 * function must be in; NULL: any.
 *
 * ERR_UNSUPPORTED: an unexpected layout, or a calling convention without a trampoline; ERR_INVALID:
 * it is in another library; ERR_BUSY: attached before; ERR_FULL: no trampoline is left. */
int opscope__builtin_attach(PyObject *object, const char *name, uint32_t owner, const char *library,
                            const struct opscope__pages *pages);
/* The same for a bound method whose operator depends on its object. */
int opscope__builtin_attach_by_self(PyObject *object, const char *name, uint32_t owner,
                                    const struct opscope__pages *pages,
                                    opscope__op_of_self op_of_self, int index);
/* Restores every pointer of that owner that still points to a trampoline. */
void opscope__builtin_detach(uint32_t owner);

#endif
