/* Autograd in Python: requires_grad, grad, grad_fn, backward.
 *
 * A thin layer: the core has the rules and the error texts. opscope/tensor/autograd.py has the
 * friendly signatures (grad, no_grad, Function).
 */
#include "tensor/python/autograd.h"

/* ---- attributes of Tensor ------------------------------------------------------------------------- */

static PyObject *get_requires_grad(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_tensor_requires_grad(opscope__py_core(self)));
}

static int set_requires_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    int on = value ? PyObject_IsTrue(value) : 0;
    if (on < 0) {
        return -1;
    }
    int status = opscope_tensor_set_requires_grad(opscope__py_core(self), on);
    if (status != OPSCOPE_OK) {
        opscope__py_raise(status);
        return -1;
    }
    return 0;
}

static PyObject *get_grad(PyObject *self, void *unused)
{
    (void)unused;
    opscope_tensor *grad = opscope_tensor_grad(opscope__py_core(self));
    if (!grad) {
        Py_RETURN_NONE;
    }
    return opscope__py_tensor_wrap(opscope_tensor_retain(grad));
}

static int set_grad(PyObject *self, PyObject *value, void *unused)
{
    (void)unused;
    opscope_tensor *grad = NULL;
    if (value && value != Py_None) {
        grad = opscope__py_tensor_of(value, "grad");
        if (!grad) {
            return -1;
        }
    }
    int status = opscope_tensor_set_grad(opscope__py_core(self), grad);
    if (status != OPSCOPE_OK) {
        opscope__py_raise(status);
        return -1;
    }
    return 0;
}

static PyObject *get_retains_grad(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_tensor_retains_grad(opscope__py_core(self)));
}

static PyObject *get_grad_fn(PyObject *self, void *unused)
{
    (void)unused;
    return opscope__py_node_wrap(opscope_tensor_grad_fn(opscope__py_core(self)));
}

static PyObject *get_is_leaf(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_tensor_is_leaf(opscope__py_core(self)));
}

PyGetSetDef opscope__py_autograd_attributes[] = {
    {"requires_grad", get_requires_grad, set_requires_grad,
     "Whether the tape records operators on it.", NULL},
    {"grad", get_grad, set_grad, "The gradient that backward stored here, or None.", NULL},
    {"grad_fn", get_grad_fn, NULL, "The node of the tape that computed it, or None.", NULL},
    {"retains_grad", get_retains_grad, NULL,
     "Whether backward stores its gradient in `grad` although it is no leaf.", NULL},
    {"is_leaf", get_is_leaf, NULL, "Whether no node of the tape computed it.", NULL},
    {0},
};

static PyObject *requires_grad_in_place(PyObject *self, PyObject *args)
{
    PyObject *on = Py_True;
    if (!PyArg_ParseTuple(args, "|O:requires_grad_", &on) ||
        set_requires_grad(self, on, NULL) < 0) {
        return NULL;
    }
    return Py_NewRef(self);
}

static PyObject *retain_grad(PyObject *self, PyObject *unused)
{
    (void)unused;
    int status = opscope_tensor_retain_grad(opscope__py_core(self));
    return status == OPSCOPE_OK ? Py_NewRef(Py_None) : opscope__py_raise(status);
}

static PyObject *detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    opscope_tensor *detached;
    int status = opscope_tensor_detach(opscope__py_core(self), &detached);
    return status == OPSCOPE_OK ? opscope__py_tensor_wrap(detached) : opscope__py_raise(status);
}

PyMethodDef opscope__py_autograd_methods[] = {
    {"requires_grad_", requires_grad_in_place, METH_VARARGS,
     "requires_grad_($self, requires_grad=True, /)\n--\n\nTurns requires_grad on or off; returns "
     "the tensor."},
    {"retain_grad", retain_grad, METH_NOARGS,
     "retain_grad($self)\n--\n\nMakes backward store its gradient in `grad` although it is no leaf."},
    {"register_hook", opscope__py_register_hook, METH_O,
     "register_hook($self, hook, /)\n--\n\nCalls hook(gradient) whenever its gradient has been "
     "computed; a result other than\nNone replaces the gradient. Returns a Hook, whose "
     "remove() removes the hook."},
    {"detach", detach, METH_NOARGS,
     "detach($self)\n--\n\nA tensor with the same storage, off the tape."},
    {0},
};

/* ---- walking the tape ------------------------------------------------------------------------------- */

static PyObject *backward(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *roots_tuple;
    PyObject *gradients_tuple;
    int retain;
    int create;
    if (!PyArg_ParseTuple(args, "O!O!pp:backward", &PyTuple_Type, &roots_tuple, &PyTuple_Type,
                          &gradients_tuple, &retain, &create)) {
        return NULL;
    }
    PyObject *result = NULL;
    opscope_tensor **roots = opscope__py_tensors_of(roots_tuple, "backward(): a root", false);
    opscope_tensor **gradients =
        roots ? opscope__py_tensors_of(gradients_tuple, "backward(): a gradient", true) : NULL;
    if (gradients) {
        size_t count = (size_t)PyTuple_Size(roots_tuple);
        PyThreadState *state = PyEval_SaveThread();
        int status = opscope_backward(roots, gradients, count, retain, create);
        PyEval_RestoreThread(state);
        result = status == OPSCOPE_OK ? Py_NewRef(Py_None) : opscope__py_raise(status);
    }
    PyMem_Free(gradients);
    PyMem_Free(roots);
    return result;
}

/* Takes the tensors; NULL becomes None. */
static PyObject *wrap_all(opscope_tensor **tensors, size_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; i < count; i++) {
        PyObject *item = tensors[i] ? opscope__py_tensor_wrap(tensors[i]) : Py_NewRef(Py_None);
        if (!item || !tuple) {
            Py_XDECREF(item);
            Py_CLEAR(tuple);
        } else {
            PyTuple_SetItem(tuple, (Py_ssize_t)i, item);
        }
    }
    return tuple;
}

static PyObject *grad(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *roots_tuple;
    PyObject *inputs_tuple;
    PyObject *gradients_tuple;
    int retain;
    int create;
    int allow_unused;
    if (!PyArg_ParseTuple(args, "O!O!O!ppp:grad", &PyTuple_Type, &roots_tuple, &PyTuple_Type,
                          &inputs_tuple, &PyTuple_Type, &gradients_tuple, &retain, &create,
                          &allow_unused)) {
        return NULL;
    }
    size_t input_count = (size_t)PyTuple_Size(inputs_tuple);
    PyObject *result = NULL;
    opscope_tensor **roots = opscope__py_tensors_of(roots_tuple, "grad(): an output", false);
    opscope_tensor **inputs =
        roots ? opscope__py_tensors_of(inputs_tuple, "grad(): an input", false) : NULL;
    opscope_tensor **gradients =
        inputs ? opscope__py_tensors_of(gradients_tuple, "grad(): a gradient", true) : NULL;
    opscope_tensor **out = gradients ? PyMem_Calloc(input_count + 1, sizeof *out) : NULL;
    if (out) {
        size_t count = (size_t)PyTuple_Size(roots_tuple);
        PyThreadState *state = PyEval_SaveThread();
        int status = opscope_grad(roots, gradients, count, inputs, input_count, retain, create,
                                  allow_unused, out);
        PyEval_RestoreThread(state);
        result = status == OPSCOPE_OK ? wrap_all(out, input_count) : opscope__py_raise(status);
    } else if (gradients) {
        PyErr_NoMemory();
    }
    PyMem_Free(out);
    PyMem_Free(gradients);
    PyMem_Free(inputs);
    PyMem_Free(roots);
    return result;
}

static PyObject *set_grad_mode(PyObject *module, PyObject *on)
{
    (void)module;
    int truth = PyObject_IsTrue(on);
    return truth < 0 ? NULL : PyBool_FromLong(opscope_grad_mode_set(truth));
}

static PyObject *grad_mode(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(opscope_grad_mode());
}

static PyMethodDef functions[] = {
    {"backward", backward, METH_VARARGS, NULL},
    {"grad", grad, METH_VARARGS, NULL},
    {"set_grad_mode", set_grad_mode, METH_O, NULL},
    {"grad_mode", grad_mode, METH_NOARGS, NULL},
    {"record", opscope__py_record, METH_VARARGS, NULL},
    {"as_output", opscope__py_as_output, METH_VARARGS, NULL},
    {0},
};

int opscope__py_add_autograd(PyObject *module)
{
    return opscope__py_add_node(module) < 0 || opscope__py_add_hook(module) < 0
               ? -1
               : PyModule_AddFunctions(module, functions);
}
