/* The type Node: a node of the tape, as grad_fn shows it. */
#include <string.h>

#include "tensor/python/autograd.h"

typedef struct {
    PyObject_HEAD
    opscope_node *core; /* one reference */
} node_object;

static PyTypeObject *node_type;

PyObject *opscope__py_node_wrap(opscope_node *core)
{
    if (!core) {
        Py_RETURN_NONE;
    }
    node_object *self = PyObject_New(node_object, node_type);
    if (self) {
        self->core = opscope_node_retain(core);
    }
    return (PyObject *)self;
}

static void node_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    opscope_node_release(((node_object *)self)->core);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The name in PyTorch's form: "LogSoftmaxBackward0" for "core::LogSoftmaxBackward". */
static PyObject *node_repr(PyObject *self)
{
    const char *name = opscope_node_name(((node_object *)self)->core);
    const char *after = strstr(name, "::");
    return after ? PyUnicode_FromFormat("<%s0>", after + 2) : PyUnicode_FromFormat("<%s>", name);
}

static PyObject *node_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(opscope_node_name(((node_object *)self)->core));
}

static PyObject *node_next_functions(PyObject *self, void *unused)
{
    (void)unused;
    opscope_node *core = ((node_object *)self)->core;
    size_t count = opscope_node_next_count(core);
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; tuple && i < count; i++) {
        PyObject *next = opscope__py_node_wrap(opscope_node_next(core, i));
        if (!next) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SetItem(tuple, (Py_ssize_t)i, next);
        }
    }
    return tuple;
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self)\n--\n\nThe name of its range."},
    {0},
};

static PyGetSetDef node_attributes[] = {
    {"next_functions", node_next_functions, NULL,
     "The node that computed each input; None for a leaf, or an input that needs no grad.", NULL},
    {0},
};

static PyType_Slot node_slots[] = {
    {Py_tp_doc, "A node of the tape, which computes the gradients of an operator's inputs."},
    {Py_tp_repr, (void *)node_repr},
    {Py_tp_dealloc, (void *)node_dealloc},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_attributes},
    {0, NULL},
};

static PyType_Spec node_spec = {
    .name = "opscope.tensor.Node",
    .basicsize = sizeof(node_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = node_slots,
};

int opscope__py_add_node(PyObject *module)
{
    node_type = (PyTypeObject *)PyType_FromSpec(&node_spec);
    return node_type ? PyModule_AddObjectRef(module, "Node", (PyObject *)node_type) : -1;
}
