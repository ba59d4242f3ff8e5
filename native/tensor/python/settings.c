/* What the core is told for the whole process: its OpenBLAS (found by opscope/tensor/blas.py), a seed. */
#include "tensor/python/python.h"

static PyObject *load_blas(PyObject *module, PyObject *args)
{
    (void)module;
    const char *path;
    const char *prefix;
    const char *suffix;
    if (!PyArg_ParseTuple(args, "sss:load_blas", &path, &prefix, &suffix)) {
        return NULL;
    }
    int status = opscope_blas_load(path, prefix, suffix);
    return status == OPSCOPE_OK ? Py_NewRef(Py_None) : opscope__py_raise(status);
}

static PyObject *manual_seed(PyObject *module, PyObject *number)
{
    (void)module;
    unsigned long long seed = PyLong_AsUnsignedLongLong(number);
    if (seed == (unsigned long long)-1 && PyErr_Occurred()) {
        return NULL;
    }
    opscope_tensor_seed(seed);
    Py_RETURN_NONE;
}

PyMethodDef opscope__py_settings_functions[] = {
    {"load_blas", load_blas, METH_VARARGS, NULL},
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed, /)\n--\n\nMakes what rand, randn and others draw next repeatable: the same "
     "after the same seed.\n\nseed: 0 to 2**64 - 1."},
    {0},
};
