/* Nodes of the tape whose backward is written in Python (Function in opscope/tensor/autograd.py).
 *
 * The core calls them without the GIL while it walks the tape.
 */
#include "tensor/python/autograd.h"

#include "tensor/backward/evaluate.h"

/* The core keeps a tuple for such a node: the function, called with one gradient or None for each
 * output, and the numbers of inputs and outputs. */
static size_t number(PyObject *kept, Py_ssize_t index)
{
    return PyLong_AsSize_t(PyTuple_GetItem(kept, index));
}

/* Converts what Python's backward returned into new references for the core. */
static int take_gradients(PyObject *returned, size_t count, opscope_tensor **out)
{
    if (!PyTuple_Check(returned) || (size_t)PyTuple_Size(returned) != count) {
        PyErr_Format(PyExc_RuntimeError,
                     "backward must return %zu gradients, one for each tensor that forward took",
                     count);
        return -1;
    }
    opscope_tensor **tensors = opscope__py_tensors_of(returned, "the result of backward", true);
    if (!tensors) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        out[i] = tensors[i] ? opscope_tensor_retain(tensors[i]) : NULL;
    }
    PyMem_Free(tensors);
    return 0;
}

static int run_python_node(void *user, opscope_tensor *const *gradients, opscope_tensor **out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    size_t output_count = number(user, 2);
    PyObject *args = PyTuple_New((Py_ssize_t)output_count);
    for (size_t i = 0; args && i < output_count; i++) {
        PyObject *item = gradients[i] ? opscope__py_tensor_wrap(opscope_tensor_retain(gradients[i]))
                                      : Py_NewRef(Py_None);
        if (!item) {
            Py_CLEAR(args);
        } else {
            PyTuple_SetItem(args, (Py_ssize_t)i, item);
        }
    }
    PyObject *returned = args ? PyObject_CallObject(PyTuple_GetItem(user, 0), args) : NULL;
    int result = returned ? take_gradients(returned, number(user, 1), out) : -1;
    Py_XDECREF(returned);
    Py_XDECREF(args);
    if (result < 0) {
        result = opscope__py_fail_with_exception("a custom function's backward raised");
    }
    PyGILState_Release(state);
    return result;
}

PyObject *opscope__py_record(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *inputs_tuple;
    PyObject *outputs_tuple;
    PyObject *function;
    if (!PyArg_ParseTuple(args, "sO!O!O:record", &name, &PyTuple_Type, &inputs_tuple, &PyTuple_Type,
                          &outputs_tuple, &function)) {
        return NULL;
    }
    PyObject *result = NULL;
    Py_ssize_t input_count = PyTuple_Size(inputs_tuple), output_count = PyTuple_Size(outputs_tuple);
    opscope_tensor **inputs = opscope__py_tensors_of(inputs_tuple, "record(): an input", false);
    opscope_tensor **outputs =
        inputs ? opscope__py_tensors_of(outputs_tuple, "record(): an output", false) : NULL;
    PyObject *kept = outputs ? Py_BuildValue("(Onn)", function, input_count, output_count) : NULL;
    if (kept) {
        int status = opscope_autograd_record(name, inputs, (size_t)input_count, outputs,
                                             (size_t)output_count, run_python_node,
                                             opscope__py_release_object, kept);
        for (Py_ssize_t i = 0; i < output_count && status == OPSCOPE_OK; i++) {
            opscope__py_track(PyTuple_GetItem(outputs_tuple, i));
        }
        result = status == OPSCOPE_OK ? Py_NewRef(Py_None) : opscope__py_raise(status);
    }
    PyMem_Free(outputs);
    PyMem_Free(inputs);
    return result;
}

PyObject *opscope__py_as_output(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *tensor;
    unsigned index;
    if (!PyArg_ParseTuple(args, "O!I:as_output", opscope__py_tensor_type, &tensor, &index)) {
        return NULL;
    }
    opscope_tensor *output;
    int status = opscope__as_output(opscope__py_core(tensor), index, &output);
    return status == OPSCOPE_OK ? opscope__py_tensor_wrap(output) : opscope__py_raise(status);
}
