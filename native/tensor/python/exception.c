/* Converts the core's failures to Python exceptions, and exceptions to failures of the core.
 *
 * No other file does this.
 */
#include <string.h>

#include "tensor/base/error.h"
#include "tensor/python/autograd.h"

PyObject *opscope__py_raise(int status)
{
    PyObject *raised = opscope__failure_cause();
    if (raised) { /* a custom function or a hook raised it, possibly on another thread */
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(raised)), raised,
                      PyException_GetTraceback(raised));
        return NULL;
    }
    if (status == OPSCOPE_ERR_NO_MEMORY && opscope_tensor_error_kind() != OPSCOPE_ERROR_MEMORY) {
        return PyErr_NoMemory();
    }
    const char *text = opscope_tensor_error();
    if (!text || *text == '\0') {
        text = opscope_status_text(status);
    }
    PyObject *type = PyExc_RuntimeError;
    switch (opscope_tensor_error_kind()) {
    case OPSCOPE_ERROR_VALUE:
        type = PyExc_ValueError;
        break;
    case OPSCOPE_ERROR_TYPE:
        type = PyExc_TypeError;
        break;
    case OPSCOPE_ERROR_INDEX:
        type = PyExc_IndexError;
        break;
    case OPSCOPE_ERROR_MEMORY:
        type = PyExc_MemoryError;
        break;
    case OPSCOPE_ERROR_ASSERTION:
        type = PyExc_AssertionError;
        break;
    case OPSCOPE_ERROR_OVERFLOW:
        type = PyExc_OverflowError;
        break;
    case OPSCOPE_ERROR_ZERO_DIVISION:
        type = PyExc_ZeroDivisionError;
        break;
    case OPSCOPE_ERROR_RUNTIME:
        break;
    }
    opscope__py_set_error(type, text);
    return NULL;
}

void opscope__py_set_error(PyObject *type, const char *text)
{
    /* Names in files have any bytes, and a long text ends anywhere. */
    PyObject *readable = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
    if (readable) {
        PyErr_SetObject(type, readable);
        Py_DECREF(readable);
    }
}

int opscope__py_fail_with_exception(const char *text)
{
    PyObject *type;
    PyObject *raised;
    PyObject *traceback;
    PyErr_Fetch(&type, &raised, &traceback);
    PyErr_NormalizeException(&type, &raised, &traceback);
    if (traceback) {
        PyException_SetTraceback(raised, traceback);
    }
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    int status = opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "%s", text);
    opscope__failure_attach(raised, opscope__py_release_object);
    return status;
}
