/* definition.h -- finds the definition (PyMethodDef) behind a callable of an extension module. */
#ifndef OPSCOPE_BRIDGES_DEFINITION_H
#define OPSCOPE_BRIDGES_DEFINITION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "bridges/pages.h"

/* Its ml_meth is writable. NULL: another kind of callable, or its layout differs from the one
 * known. `*is_bound` tells whether a call of `object` needs no further object: it is false for a
 * method of a type, which cannot be tried without an instance. */
PyMethodDef *opscope__definition(PyObject *object, const struct opscope__pages *pages,
                                 bool *is_bound);

#endif
