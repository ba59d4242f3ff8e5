/* numpy/cost.c -- measures the extra cost of a range of NumPy beyond the recorder's own part, once,
 * while the bridge attaches. */
#include "bridges/numpy/pointers.h"
#include "bridges/python_op.h"
#include "recorder/cost_trial.h"

enum { TURNS = 30, CALLS = 10 };

static bool run(PyObject *add, PyObject *array)
{
    PyObject *result = PyObject_CallFunctionObjArgs(add, array, array, NULL);
    Py_XDECREF(result);
    return result != NULL;
}

/* 0 if NumPy or the machine does not allow a measurement. */
static uint64_t measure(PyObject *add, PyObject *array)
{
    opscope__cost_trial trial;
    bool works = opscope__cost_trial_begin(&trial);
    if (!works) {
        return 0;
    }
    for (int turn = 0; turn < TURNS && works; turn++) {
        opscope__cost_trial_set(&trial, turn % 2 != 0);
        works = run(add, array); /* the first call runs with cold caches */
        if (!opscope__cost_trial_start(&trial)) {
            break;
        }
        for (int i = 0; i < CALLS && works; i++) {
            works = run(add, array);
        }
        opscope__cost_trial_stop(&trial);
    }
    PyErr_Clear();
    const uint64_t extra_ps = opscope__cost_trial_end(&trial, CALLS);
    return works ? extra_ps : 0;
}

void opscope__numpy_measure(PyObject *add, PyObject *array, const char *name)
{
    if (!opscope__python_op_has_cost()) {
        opscope__python_op_set_cost(add != NULL && array != NULL ? measure(add, array) : 0);
    }
    (void)opscope__python_op(name);
}
