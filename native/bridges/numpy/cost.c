/* numpy/cost.c -- the operators of the bridge, and the extra cost of their ranges beyond the
 * recorder's own part: the path through the trampoline, measured once while attaching. */
#include "bridges/numpy/pointers.h"
#include "opscope/recorder.h"
#include "recorder/cost_trial.h"

enum { TURNS = 10, CALLS = 10 };
/* Used if the measurement fails: a typical value of the machines measured so far. */
static const uint64_t USUAL_EXTRA_PS = 35000;

/* Written by attach; read by any thread, also at the first call of a ufunc's method, with
 * load_relaxed: an old value is 0. 0: unknown. */
static uint64_t extra_cost_ps;

const opscope_op *opscope__numpy_op(const char *name)
{
    const opscope_op *op = opscope_op_other();
    if (opscope_op_intern(name, "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op) == OPSCOPE_OK) {
        opscope_recorder_extra_cost(op->id, opscope__load_relaxed(&extra_cost_ps));
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
    const uint64_t measured = add != NULL && array != NULL ? measure(add, array) : 0;
    /* Partner: the load in opscope__numpy_op. */
    opscope__store_relaxed(&extra_cost_ps, measured != 0 ? measured : USUAL_EXTRA_PS);
    (void)opscope__numpy_op(name);
}
