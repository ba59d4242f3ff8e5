/* numpy/layout.c -- finds the pointers to replace, and verifies every assumption. Writes none. */
#include "bridges/numpy/layout.h"

#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

static bool attribute_equals(PyTypeObject *type, const char *attribute, Py_ssize_t expected)
{
    PyObject *value = PyObject_GetAttrString((PyObject *)type, attribute);
    bool equal = value != NULL && PyLong_AsSsize_t(value) == expected;
    Py_XDECREF(value);
    PyErr_Clear();
    return equal;
}

size_t opscope__tuple_items_offset(void)
{
    Py_ssize_t offset = ((struct opscope__type_layout *)&PyTuple_Type)->basic_size;
    PyObject *tuple = PyTuple_Pack(2, Py_None, Py_True);
    bool found = tuple != NULL && attribute_equals(&PyTuple_Type, "__basicsize__", offset) &&
                 offset >= (Py_ssize_t)sizeof(PyVarObject) && offset <= 64 && Py_SIZE(tuple) == 2;
    if (found) {
        PyObject *const *items = (PyObject *const *)(void *)((char *)tuple + offset);
        found = items[0] == Py_None && items[1] == Py_True;
    }
    Py_XDECREF(tuple);
    return found ? (size_t)offset : 0;
}

/* The type through the mirror struct, or NULL for another type or layout. */
static const struct opscope__type_layout *checked_type(PyTypeObject *type, const char *name)
{
    const struct opscope__type_layout *layout = (const struct opscope__type_layout *)type;
    if (layout->dealloc != (destructor)PyType_GetSlot(type, Py_tp_dealloc) ||
        layout->repr != (reprfunc)PyType_GetSlot(type, Py_tp_repr) ||
        !attribute_equals(type, "__basicsize__", layout->basic_size) ||
        !attribute_equals(type, "__itemsize__", layout->item_size) ||
        strcmp(layout->name, name) != 0) {
        return NULL;
    }
    return layout;
}

static const struct opscope__type_layout *ufunc_type; /* attach; the same for all ufuncs */

opscope__vectorcall *opscope__ufunc_known_vectorcall(PyObject *ufunc)
{
    return ufunc_type == (const void *)Py_TYPE(ufunc)
               ? (opscope__vectorcall *)(void *)((char *)ufunc + ufunc_type->vectorcall_offset)
               : NULL;
}

static bool find_ufunc_type(PyObject *ufunc)
{
    const unsigned long have_vectorcall = 1UL << 11; /* Py_TPFLAGS_HAVE_VECTORCALL */
    if (ufunc_type == (const void *)Py_TYPE(ufunc)) {
        return true;
    }
    const struct opscope__type_layout *type = checked_type(Py_TYPE(ufunc), "numpy.ufunc");
    if (type == NULL || (PyType_GetFlags(Py_TYPE(ufunc)) & have_vectorcall) == 0) {
        return false;
    }
    const Py_ssize_t offset = type->vectorcall_offset;
    if (offset < (Py_ssize_t)sizeof(PyObject) || offset % (Py_ssize_t)alignof(void *) != 0 ||
        offset > type->basic_size - (Py_ssize_t)sizeof(void *)) {
        return false;
    }
    ufunc_type = type;
    return true;
}

opscope__vectorcall *opscope__ufunc_vectorcall(PyObject *ufunc, const struct opscope__pages *pages)
{
    opscope__vectorcall *slot =
        find_ufunc_type(ufunc) ? opscope__ufunc_known_vectorcall(ufunc) : NULL;
    if (slot == NULL || !opscope__pages_grant(pages, slot, sizeof *slot, PROT_READ | PROT_WRITE) ||
        !opscope__pages_grant(pages, (void *)*slot, 1, PROT_EXEC)) {
        return NULL;
    }
    return slot;
}

struct opscope__mapping_layout *opscope__array_mapping(PyObject *array,
                                                       const struct opscope__pages *pages)
{
    PyTypeObject *type = Py_TYPE(array);
    const struct opscope__type_layout *layout = checked_type(type, "numpy.ndarray");
    if (layout == NULL) {
        return NULL;
    }
    struct opscope__mapping_layout *mapping = layout->as_mapping;
    if (!opscope__pages_grant(pages, mapping, sizeof *mapping, PROT_READ | PROT_WRITE) ||
        mapping->length != (lenfunc)PyType_GetSlot(type, Py_mp_length) ||
        mapping->subscript != (binaryfunc)PyType_GetSlot(type, Py_mp_subscript) ||
        mapping->assign_subscript != (objobjargproc)PyType_GetSlot(type, Py_mp_ass_subscript)) {
        return NULL;
    }
    return mapping;
}
