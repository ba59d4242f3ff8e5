/* numpy/layout.h -- fields of CPython's objects that the bridge uses and the limited API does not
 * have.
 *
 * The structs mirror CPython 3.10 to 3.14, with and without the GIL: what differs is in PyObject,
 * which Python.h defines. Before the code uses a mirror for an object, it checks that the fields
 * around the needed one equal what the limited API returns for that object.
 */
#ifndef OPSCOPE_BRIDGES_NUMPY_LAYOUT_H
#define OPSCOPE_BRIDGES_NUMPY_LAYOUT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

#include "bridges/pages.h"

typedef PyObject *(*opscope__vectorcall)(PyObject *callable, PyObject *const *args, size_t nargsf,
                                         PyObject *names);

/* PyMappingMethods. */
struct opscope__mapping_layout {
    lenfunc length;
    binaryfunc subscript;
    objobjargproc assign_subscript;
};

/* PyTypeObject up to tp_as_mapping. */
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

/* The offset of a tuple's items, in bytes; 0 if it is unknown. */
size_t opscope__tuple_items_offset(void);
/* The address of the vectorcall of a NumPy ufunc, writable; NULL if the layout differs from the
 * mirror. */
opscope__vectorcall *opscope__ufunc_vectorcall(PyObject *ufunc, const struct opscope__pages *pages);
/* The same for any ufunc once one has been found, without the check of memory: it is an object of
 * the type whose layout was verified. NULL for another object, or before that. */
opscope__vectorcall *opscope__ufunc_known_vectorcall(PyObject *ufunc);
/* The mapping methods of an ndarray's type, writable; NULL if the layout differs from the
 * mirror. */
struct opscope__mapping_layout *opscope__array_mapping(PyObject *array,
                                                       const struct opscope__pages *pages);

#endif
