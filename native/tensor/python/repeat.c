/* Calls of an operator in a loop in C, so that a bench can compare with them what calls operators
 * otherwise. */
#include "tensor/python/python.h"

/* repeat_call(operator, a, b, count): calls operator(a, b) `count` times. */
static PyObject *repeat_call(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *a, *b;
    unsigned long count;
    if (!PyArg_ParseTuple(args, "sOOk:repeat_call", &name, &a, &b, &count)) {
        return NULL;
    }
    const opscope_operator *op = opscope_operator_find(name);
    if (op == NULL || !opscope__py_is_tensor(a) || !opscope__py_is_tensor(b)) {
        PyErr_SetString(PyExc_TypeError, "repeat_call: an operator and two tensors");
        return NULL;
    }
    const opscope_argument arguments[] = {
        {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = opscope__py_core(a)}},
        {OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = opscope__py_core(b)}}};
    int status = OPSCOPE_OK;
    Py_BEGIN_ALLOW_THREADS for (unsigned long i = 0; i < count && status == OPSCOPE_OK; i++)
    {
        opscope_tensor *outputs[OPSCOPE_OUTPUT_LIMIT] = {NULL};
        status = opscope_call(op, arguments, 2, outputs);
        opscope_tensor_release(outputs[0]);
    }
    Py_END_ALLOW_THREADS return status == OPSCOPE_OK ? Py_NewRef(Py_None)
                                                     : opscope__py_raise(status);
}

PyMethodDef opscope__py_repeat_functions[] = {
    {"repeat_call", repeat_call, METH_VARARGS, NULL},
    {0},
};
