/* Libraries of operators (load_library), and the counters of allocators.
 *
 * opscope/tensor/library.py finds the path, and allocator.py names the counters.
 */
#include "tensor/python/python.h"

#include "opscope/operator.h"

/* ---- libraries ---------------------------------------------------------------------------------- */

static PyObject *load_library(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *path;
    if (!PyArg_ParseTuple(args, "O&:load_library", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    opscope_operator_library library;
    const char *text = PyBytes_AsString(path);
    /* The library's entry point may wait for a thread that needs the GIL. */
    PyThreadState *state = PyEval_SaveThread();
    int status = opscope_operators_load(text, &library);
    PyEval_RestoreThread(state);
    Py_DECREF(path);
    return status == OPSCOPE_OK ? opscope__py_operators(library.operators, library.count)
                                : opscope__py_raise(status);
}

/* ---- allocators --------------------------------------------------------------------------------- */

static const opscope_allocator *find(PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    const opscope_allocator *allocator = text ? opscope_allocator_find(text) : NULL;
    if (text && !allocator) {
        PyErr_Format(PyExc_ValueError,
                     "there is no allocator %R; \"cpu\" and \"caching\" are built in", name);
    }
    return allocator;
}

static PyObject *get_allocator(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(opscope_allocator_default()->name);
}

static PyObject *set_allocator(PyObject *module, PyObject *name)
{
    (void)module;
    const opscope_allocator *allocator = find(name);
    if (!allocator) {
        return NULL;
    }
    opscope_allocator_set_default(allocator);
    Py_RETURN_NONE;
}

static PyObject *read_allocator(PyObject *module, PyObject *name)
{
    (void)module;
    const opscope_allocator *allocator = find(name);
    if (!allocator) {
        return NULL;
    }
    opscope_allocator_stats stats;
    opscope_allocator_read_stats(allocator, &stats);
    return Py_BuildValue("KKKK", (unsigned long long)stats.allocated_bytes,
                         (unsigned long long)stats.live_bytes, (unsigned long long)stats.peak_bytes,
                         (unsigned long long)stats.allocation_count);
}

static PyObject *reset_peak(PyObject *module, PyObject *name)
{
    (void)module;
    const opscope_allocator *allocator = find(name);
    if (!allocator) {
        return NULL;
    }
    opscope_allocator_reset_peak(allocator);
    Py_RETURN_NONE;
}

PyMethodDef opscope__py_library_functions[] = {
    {"load_library", load_library, METH_VARARGS, NULL},
    {"get_allocator", get_allocator, METH_NOARGS,
     "get_allocator()\n--\n\nThe name of the allocator of new tensors."},
    {"set_allocator", set_allocator, METH_O,
     "set_allocator(name, /)\n--\n\nSets the allocator of all new tensors of the process: \"cpu\" "
     "(the C library's), \"caching\" (keeps freed memory by size), or one of a loaded library. "
     "ValueError if no allocator has that name. Existing tensors keep theirs."},
    {"read_allocator", read_allocator, METH_O, NULL},
    {"reset_peak", reset_peak, METH_O, NULL},
    {0},
};
