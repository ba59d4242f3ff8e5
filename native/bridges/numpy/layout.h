/* numpy_layout.h -- the fields of CPython's objects that the bridge touches and the limited API
 * does not name.
 *
 * Mirrors of CPython 3.10 to 3.14 with the GIL. A mirror is believed for one object only after the
 * fields around the wanted one have been found equal to what the limited API says of that object.
 */
#ifndef OPSCOPE_BRIDGES_NUMPY_LAYOUT_H
#define OPSCOPE_BRIDGES_NUMPY_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "bridges/pages.h"

typedef PyObject *(*opscope__vectorcall)(PyObject *callable, PyObject *const *args, size_t nargsf,
                                         PyObject *names);

/* PyCFunctionObject: a builtin function, or a builtin method bound to its object. */
struct opscope__builtin_layout {
    PyObject head;
    PyMethodDef *definition;
    PyObject *self;
};

/* PyMappingMethods. */
struct opscope__mapping_layout {
    lenfunc length;
    binaryfunc subscript;
    objobjargproc assign_subscript;
};

/* PyTypeObject as far as tp_as_mapping. */
struct opscope__type_layout {
    PyVarObject head;
    const char *name;
    Py_ssize_t basic_size;
    Py_ssize_t item_size;
    destructor dealloc;
    Py_ssize_t vectorcall_offset;
    void *getattr;
    void *setattr;
    void *as_async;
    reprfunc repr;
    void *as_number;
    void *as_sequence;
    struct opscope__mapping_layout *as_mapping;
};

/* Where in a tuple its items start, in bytes; 0 where that cannot be told. */
size_t opscope__tuple_items_offset(void);
/* The definition behind a builtin, its ml_meth writable; NULL where it is not as mirrored. */
PyMethodDef *opscope__builtin_definition(PyObject *builtin, const struct opscope__pages *pages);
/* Where a ufunc of NumPy keeps its vectorcall, writable; NULL where it is not as mirrored. */
opscope__vectorcall *opscope__ufunc_vectorcall(PyObject *ufunc, const struct opscope__pages *pages);
/* The mapping methods of an ndarray's type, writable; NULL where they are not as mirrored. */
struct opscope__mapping_layout *opscope__array_mapping(PyObject *array,
                                                       const struct opscope__pages *pages);

#endif
