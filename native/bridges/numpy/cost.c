/* numpy/cost.c -- the operators of the bridge, and the extra cost of their ranges beyond the
 * recorder's own part: the path through the trampoline, measured once while attaching. */
#include "bridges/numpy/pointers.h"
#include "opscope/recorder.h"
#include "recorder/cost_trial.h"

enum { TURNS = 10, CALLS = 10 };
/* Used if the measurement fails: a typical value of the machines measured so far. */
static const uint64_t USUAL_EXTRA_PS = 35000;

static uint64_t extra_cost_ps; /* under the GIL; 0: unknown */

const opscope_op *opscope__numpy_op(const char *name)
{
    const opscope_op *op = opscope_op_other();
    if (opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op) == OPSCOPE_OK) {
        opscope_recorder_extra_cost(op->id, extra_cost_ps);
    }
    return op;
}

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
    if (extra_cost_ps != 0) {
        return;
    }
    if (add != NULL && array != NULL) {
        extra_cost_ps = measure(add, array);
    }
    extra_cost_ps = extra_cost_ps != 0 ? extra_cost_ps : USUAL_EXTRA_PS;
    (void)opscope__numpy_op(name);
}
