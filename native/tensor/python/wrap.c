/* The Tensor of a core tensor, and the reverse. tensor_type.c and the files it names define what a
 * Tensor can do. */
#include "tensor/core/tensor.h"
#include "tensor/python/python.h"

PyTypeObject *opscope__py_tensor_type;

PyObject *opscope__py_tensor_wrap(opscope_tensor *core)
{
    if (core->wrapper) {
        PyObject *known = Py_NewRef((PyObject *)core->wrapper);
        opscope_tensor_release(core);
        return known;
    }
    /* The collector does not track it; it starts to when Python objects depend on it
     * (opscope__py_track). */
    opscope__py_tensor *self = PyObject_GC_New(opscope__py_tensor, opscope__py_tensor_type);
    if (!self) {
        opscope_tensor_release(core);
        return NULL;
    }
    self->core = core;
    self->weak_references = NULL;
    core->wrapper = self;
    return (PyObject *)self;
}

void opscope__py_tensor_rebind(PyObject *tensor, opscope_tensor *core)
{
    opscope__py_tensor *self = (opscope__py_tensor *)tensor;
    opscope_tensor *old = self->core;
    old->wrapper = NULL;
    core->wrapper = self;
    self->core = core;
    opscope_tensor_release(old);
}

opscope_tensor *opscope__py_tensor_of(PyObject *object, const char *what)
{
    if (opscope__py_is_tensor(object)) {
        return opscope__py_core(object);
    }
    PyObject *type_name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    PyErr_Format(PyExc_TypeError, "%s must be a Tensor, not %S", what,
                 type_name ? type_name : Py_None);
    Py_XDECREF(type_name);
    return NULL;
}

opscope_tensor **opscope__py_tensors_of(PyObject *tuple, const char *what, bool allow_none)
{
    if (!PyTuple_Check(tuple)) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple", what);
        return NULL;
    }
    Py_ssize_t count = PyTuple_Size(tuple);
    opscope_tensor **tensors = PyMem_Calloc((size_t)count + 1, sizeof *tensors);
    if (!tensors) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (item == Py_None && allow_none) {
            continue;
        }
        tensors[i] = opscope__py_tensor_of(item, what);
        if (!tensors[i]) {
            PyMem_Free(tensors);
            return NULL;
        }
    }
    return tensors;
}
