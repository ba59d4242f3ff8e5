/* Settings of the core for the whole process: its OpenBLAS (found by opscope/tensor/blas.py), the
 * number of threads; its random numbers: seeds, states, and sequences of a thread. */
#include "tensor/python/python.h"

#include "opscope/fork.h"
#include "tensor/core/registry.h"
#include "tensor/kernels/random.h"

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

static PyObject *cpu_level(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(opscope__registry_level());
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

static PyObject *draw_seed(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(opscope_tensor_draw_seed());
}

static PyObject *random_state(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(opscope__random_state());
}

/* A state or a seed: the low 64 bits of an int. False with an exception. */
static bool to_state(PyObject *number, uint64_t *state)
{
    *state = PyLong_AsUnsignedLongLongMask(number);
    return !PyErr_Occurred();
}

static PyObject *set_random_state(PyObject *module, PyObject *number)
{
    (void)module;
    uint64_t state;
    if (!to_state(number, &state)) {
        return NULL;
    }
    opscope__random_set_state(state);
    Py_RETURN_NONE;
}

static PyObject *random_begin(PyObject *module, PyObject *number)
{
    (void)module;
    uint64_t seed;
    return to_state(number, &seed) ? PyLong_FromUnsignedLongLong(opscope__random_begin(seed))
                                   : NULL;
}

static PyObject *random_use_own(PyObject *module, PyObject *number)
{
    (void)module;
    uint64_t state;
    if (!to_state(number, &state)) {
        return NULL;
    }
    opscope__random_use_own(state);
    Py_RETURN_NONE;
}

static PyObject *random_end_own(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(opscope__random_end_own());
}

static PyObject *set_num_threads(PyObject *module, PyObject *number)
{
    (void)module;
    long count = PyLong_AsLong(number);
    if (count == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (count < 1 || count > INT_MAX || opscope_pool_set_threads((int)count) != OPSCOPE_OK) {
        return PyErr_Format(PyExc_ValueError, "set_num_threads: expected 1 to 256 threads, not %ld",
                            count);
    }
    Py_RETURN_NONE;
}

static PyObject *get_num_threads(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(opscope_pool_threads());
}

PyMethodDef opscope__py_settings_functions[] = {
    {"load_blas", load_blas, METH_VARARGS, NULL},
    {"cpu_level", cpu_level, METH_NOARGS,
     "cpu_level()\n--\n\nThe level of CPU that the operators were compiled for: 'baseline', 'avx2' "
     "or 'avx512'."},
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed, /)\n--\n\nSeeds rand, randn and the other random operators: the same seed "
     "gives the same numbers.\n\nseed: 0 to 2**64 - 1."},
    {"set_num_threads", set_num_threads, METH_O,
     "set_num_threads(count, /)\n--\n\nHow many threads operators, opscope.fork and backward() may "
     "use together, 1 to 256: by default the processors this process may use. For threads not yet "
     "started."},
    {"get_num_threads", get_num_threads, METH_NOARGS,
     "get_num_threads()\n--\n\nHow many threads operators, opscope.fork and backward() may use."},
    {"random_state", random_state, METH_NOARGS,
     "random_state()\n--\n\nThe state of the process's random sequence."},
    {"set_random_state", set_random_state, METH_O,
     "set_random_state(state, /)\n--\n\nThe process's random sequence goes on from that state."},
    {"random_begin", random_begin, METH_O,
     "random_begin(seed, /)\n--\n\nThe state of a sequence that begins with that seed."},
    {"random_use_own", random_use_own, METH_O,
     "random_use_own(state, /)\n--\n\nThis thread's operators take random numbers from a sequence "
     "of its own, which goes on from that state."},
    {"random_end_own", random_end_own, METH_NOARGS,
     "random_end_own()\n--\n\nEnds the thread's own sequence, and returns its state."},
    {"draw_seed", draw_seed, METH_NOARGS,
     "draw_seed()\n--\n\n64 bits of the process's random sequence, to seed another one with."},
    {0},
};
