/* bridges/builtin_definition.h -- the definition behind a builtin of Python, which the limited API
 * does not have.
 *
 * CPython reads ml_meth from a builtin's definition at each call, and all bound copies of a method
 * share one definition, so replacing ml_meth catches every caller.
 */
#ifndef OPSCOPE_BRIDGES_BUILTIN_DEFINITION_H
#define OPSCOPE_BRIDGES_BUILTIN_DEFINITION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "bridges/pages.h"

/* PyCFunctionObject of CPython 3.10 to 3.14 with the GIL: a builtin function, or a builtin method
 * bound to its object. */
struct opscope__builtin_layout {
    PyObject head;
    PyMethodDef *definition;
    PyObject *self;
};

typedef PyObject *(*opscope__fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t,
                                                     PyObject *);

/* The definition behind a builtin, with a writable ml_meth; NULL if the layout differs from the
 * mirror. */
PyMethodDef *opscope__builtin_definition(PyObject *builtin, const struct opscope__pages *pages);

#endif
