/* Nodes of the tape whose backward is written in Python (opscope/tensor/autograd.py's Function).
 *
 * The core calls them while it walks the tape, without the GIL.
 */
#include "tensor/python/autograd.h"

/* What the core keeps of such a node. */
struct python_node {
    PyObject *backward; /* called with one gradient or None for each output */
    size_t input_count;
    size_t output_count;
};

/* Gives the core what Python's backward returned: new references. */
static int take_gradients(const struct python_node *node, PyObject *returned, opscope_tensor **out)
{
    if (!PyTuple_Check(returned) || (size_t)PyTuple_Size(returned) != node->input_count) {
        PyErr_Format(PyExc_RuntimeError, "backward must return %zu gradients, one for each tensor "
                     "that forward took", node->input_count);
        return -1;
    }
    opscope_tensor **tensors = opscope__py_tensors_of(returned, "what backward returns", true);
    if (!tensors) {
        return -1;
    }
    for (size_t i = 0; i < node->input_count; i++) {
        out[i] = tensors[i] ? opscope_tensor_retain(tensors[i]) : NULL;
    }
    PyMem_Free(tensors);
    return 0;
}

static int run_python_node(void *user, opscope_tensor *const *gradients, opscope_tensor **out)
{
    const struct python_node *node = user;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *args = PyTuple_New((Py_ssize_t)node->output_count);
    for (size_t i = 0; args && i < node->output_count; i++) {
        PyObject *item = gradients[i]
                             ? opscope__py_tensor_wrap(opscope_tensor_retain(gradients[i]))
                             : Py_NewRef(Py_None);
        if (!item) {
            Py_CLEAR(args);
        } else {
            PyTuple_SetItem(args, (Py_ssize_t)i, item);
        }
    }
    PyObject *returned = args ? PyObject_CallObject(node->backward, args) : NULL;
    int result = returned ? take_gradients(node, returned, out) : -1;
    Py_XDECREF(returned);
    Py_XDECREF(args);
    if (result < 0) {
        /* The exception stays set on this thread, where backward() finds it (call.c). */
        result = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "a custom function's backward raised");
    }
    PyGILState_Release(state);
    return result;
}

static void release_python_node(void *user)
{
    struct python_node *node = user;
    if (Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(node->backward);
        PyMem_Free(node);
        PyGILState_Release(state);
    }
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
    opscope_tensor **inputs = opscope__py_tensors_of(inputs_tuple, "record(): an input", false);
    opscope_tensor **outputs =
        inputs ? opscope__py_tensors_of(outputs_tuple, "record(): an output", false) : NULL;
    struct python_node *node = outputs ? PyMem_Malloc(sizeof *node) : NULL;
    if (node) {
        *node = (struct python_node){Py_NewRef(function), (size_t)PyTuple_Size(inputs_tuple),
                                     (size_t)PyTuple_Size(outputs_tuple)};
        int status =
            opscope_autograd_record(name, inputs, node->input_count, outputs, node->output_count,
                                    run_python_node, release_python_node, node);
        result = status == OPSCOPE_OK ? Py_NewRef(Py_None) : opscope__py_raise(status);
    } else if (outputs) {
        PyErr_NoMemory();
    }
    PyMem_Free(outputs);
    PyMem_Free(inputs);
    return result;
}
