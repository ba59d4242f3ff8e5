/* Hooks in Python: Tensor.register_hook and its return type. */
#include "tensor/python/autograd.h"

typedef struct {
    PyObject_HEAD
    opscope_hook *core; /* one reference */
} hook_object;

static PyTypeObject *hook_type;

/* Runs during a walk, on any thread, without the GIL. */
static int show(void *user, opscope_tensor *gradient, opscope_tensor **out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    int status = OPSCOPE_OK;
    PyObject *shown = opscope__py_tensor_wrap(opscope_tensor_retain(gradient));
    PyObject *instead = shown ? PyObject_CallFunctionObjArgs(user, shown, NULL) : NULL;
    if (instead && instead != Py_None) {
        opscope_tensor *core = opscope__py_tensor_of(instead, "the result of a hook, unless None,");
        *out = core ? opscope_tensor_retain(core) : NULL;
    }
    if (PyErr_Occurred()) {
        status = opscope__py_fail_with_exception("a hook raised");
    }
    Py_XDECREF(instead);
    Py_XDECREF(shown);
    PyGILState_Release(state);
    return status;
}

PyObject *opscope__py_register_hook(PyObject *self, PyObject *function)
{
    if (!PyCallable_Check(function)) {
        return PyErr_Format(PyExc_TypeError, "register_hook(): hook must be callable");
    }
    hook_object *handle = PyObject_New(hook_object, hook_type);
    if (!handle) {
        return NULL;
    }
    handle->core = NULL;
    int status =
        opscope_tensor_register_hook(opscope__py_core(self), show, opscope__py_release_object,
                                     Py_NewRef(function), &handle->core);
    if (status != OPSCOPE_OK) {
        Py_DECREF(handle);
        return opscope__py_raise(status);
    }
    opscope__py_track(self);
    return (PyObject *)handle;
}

static void hook_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (((hook_object *)self)->core) {
        opscope_hook_release(((hook_object *)self)->core);
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *hook_remove(PyObject *self, PyObject *unused)
{
    (void)unused;
    opscope_hook_remove(((hook_object *)self)->core);
    Py_RETURN_NONE;
}

static PyObject *hook_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *hook_exit(PyObject *self, PyObject *args)
{
    (void)args;
    return hook_remove(self, NULL);
}

static PyMethodDef hook_methods[] = {
    {"remove", hook_remove, METH_NOARGS, "remove($self)\n--\n\nRemoves the hook."},
    {"__enter__", hook_enter, METH_NOARGS, NULL},
    {"__exit__", hook_exit, METH_VARARGS, NULL},
    {0},
};

static PyType_Slot hook_slots[] = {
    {Py_tp_doc,
     "A hook on a tensor's gradient. As a context manager it is removed at the end of the block."},
    {Py_tp_dealloc, (void *)hook_dealloc},
    {Py_tp_methods, hook_methods},
    {0, NULL},
};

static PyType_Spec hook_spec = {
    .name = "opscope.tensor.Hook",
    .basicsize = sizeof(hook_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = hook_slots,
};

int opscope__py_add_hook(PyObject *module)
{
    hook_type = (PyTypeObject *)PyType_FromSpec(&hook_spec);
    return hook_type ? PyModule_AddObjectRef(module, "Hook", (PyObject *)hook_type) : -1;
}
