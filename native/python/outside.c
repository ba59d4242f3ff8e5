/* python/outside.c -- the entry points that C calls in place of Python's, from outside of Python.
 * The text is a part of the cffi module's source, after its headers and before cffi's code, which
 * defines the static opscope_py_*.
 *
 * An exception that a signal handler raises within a callback belongs to the program
 * (opscope/record/interrupts.py). A pending call raises it: the interpreter makes that call on the
 * main thread, between two steps of Python code, so after the callback has returned. If that
 * happens in another callback, the exception is passed on again.
 *
 * Threads that outlive the interpreter must not enter it: from its end on, these functions call
 * nothing.
 *
 * The thread that opens windows ends for a fork, and a pending call starts it again: CPython counts
 * the threads of the process after fork() has returned (recorder/window.c).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "recorder/window.h"

static int opscope_py_has_raised; /* set in Python, taken by pass_on */
static int opscope_py_is_closed;  /* set once, at the interpreter's end */

static int opscope_py_start(const opscope_range *, void *, void **);
static int opscope_py_end(const opscope_range *, void *, void *);
static void opscope_py_drop(void *);
static int opscope_py_task(void *);
static void opscope_py_usage(const char *, void *);
static void opscope_py_usage_metadata(const char *, const char *, const char *, void *);
static size_t opscope_py_box(void *, opscope_value *, size_t);
static int opscope_py_extra_files(opscope_extra_files *, void *);

static int is_closed(void)
{
    return opscope__load_relaxed(&opscope_py_is_closed);
}

/* Called by the interpreter. Runs no Python code, in which a handler could raise again. */
static int raise_next(void *unused)
{
    PyObject *name = PyUnicode_FromString("opscope.record.interrupts");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    PyObject *raised = module != NULL ? PyObject_GetAttrString(module, "raised") : NULL;
    PyObject *error = raised != NULL ? PySequence_GetItem(raised, 0) : NULL;
    int status = 0;
    PyErr_Clear(); /* there is no exception left: another call has raised it, or the interpreter
                      ends */
    if (error != NULL) {
        (void)PySequence_DelItem(raised, 0);
        if (PySequence_Size(raised) > 0) {
            (void)Py_AddPendingCall(raise_next, NULL);
        }
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        status = -1;
    }
    Py_XDECREF(error);
    Py_XDECREF(raised);
    Py_XDECREF(module);
    Py_XDECREF(name);
    return status;
}

static void pass_on(void)
{
    if (opscope__load_relaxed(&opscope_py_has_raised) &&
        opscope__exchange_relaxed(&opscope_py_has_raised, 0) &&
        Py_AddPendingCall(raise_next, NULL) != 0) {
        /* The queue of pending calls is full: try after the next callback. Partner: the exchange.
         */
        opscope__store_relaxed(&opscope_py_has_raised, 1);
    }
}

/* The pending call may run before os.fork has returned, in Python code that os.fork runs for
 * os.register_at_fork; from 3.13 on it counts threads after that. The call is then queued again, to
 * run between two later steps, until that code has ended or this time has passed. */
enum { FORK_DEPTH_LIMIT = 16, FORK_LIMIT_NS = 100000000 };

/* Without the GIL, several threads fork, and the main thread makes the pending call, at one time.
 */
static pid_t resume_queued_by; /* relaxed: the process with resume_windows among its pending calls;
                                  two threads may both queue it, which does no harm */
static uint64_t resume_until_ns; /* relaxed: of the latest fork */
static PyObject *fork_frame; /* the frame that calls os.fork; NULL: unknown. Exchanged: who takes it
                                out owns it */
static int counts_threads;   /* this Python counts threads at a fork: 3.12 and later */

/* Puts in a frame, whose reference it takes; returns the one that was there. */
static PyObject *exchange_frame(PyObject *frame)
{
    return __atomic_exchange_n(&fork_frame, frame, __ATOMIC_ACQ_REL); /* partner: itself */
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_in_fork(const PyObject *forking)
{
    PyObject *frame = forking != NULL ? (PyObject *)PyEval_GetFrame() : NULL;
    if (frame == forking) {
        return false;
    }
    Py_XINCREF(frame);
    for (int i = 0; i < FORK_DEPTH_LIMIT && frame != NULL && frame != forking; i++) {
        PyObject *caller = PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(frame);
        frame = caller;
    }
    const bool found = frame != NULL && frame == forking;
    Py_XDECREF(frame);
    PyErr_Clear(); /* None has no f_back: the end of the stack */
    return found;
}

static int resume_windows(void *unused)
{
    PyObject *frame = exchange_frame(NULL);
    /* Partner: the store in defer_windows. */
    if (is_in_fork(frame) && monotonic_ns() < opscope__load_relaxed(&resume_until_ns) &&
        Py_AddPendingCall(resume_windows, NULL) == 0) {
        Py_XDECREF(exchange_frame(frame));
        return 0;
    }
    opscope__store_relaxed(&resume_queued_by, 0); /* partner: the load in defer_windows */
    opscope__window_resume();
    Py_XDECREF(frame);
    return 0;
}

static bool defer_windows(void)
{
    if (is_closed()) {
        return false;
    }
    /* Partner: the stores below and in resume_windows. */
    if (opscope__load_relaxed(&resume_queued_by) == getpid()) {
        return true;
    }
    opscope__store_relaxed(&resume_queued_by, getpid());
    opscope__store_relaxed(&resume_until_ns, monotonic_ns() + FORK_LIMIT_NS);
    if (Py_AddPendingCall(resume_windows, NULL) != 0) {
        opscope__store_relaxed(&resume_queued_by, 0);
        return false;
    }
    /* In those versions this checks the thread's own state; a thread without the GIL has none. */
    if (counts_threads && PyThreadState_GetDict() != NULL) {
        PyObject *frame = (PyObject *)PyEval_GetFrame();
        Py_XINCREF(frame);
        Py_XDECREF(exchange_frame(frame));
    }
    return true;
}

static void opscope_py_follow_forks(int python_counts_threads)
{
    counts_threads = python_counts_threads;
    opscope__window_defer(defer_windows);
}

static int opscope_py_start_outside(const opscope_range *fn, void *user, void **context)
{
    int status = is_closed() ? OPSCOPE_OK : opscope_py_start(fn, user, context);
    pass_on();
    return status;
}

static int opscope_py_end_outside(const opscope_range *fn, void *user, void *context)
{
    int status = is_closed() ? OPSCOPE_OK : opscope_py_end(fn, user, context);
    pass_on();
    return status;
}

static void opscope_py_drop_outside(void *user)
{
    if (!is_closed()) {
        opscope_py_drop(user);
    }
    pass_on();
}

static int opscope_py_task_outside(void *arg)
{
    return is_closed() ? OPSCOPE_ERR_LOST : opscope_py_task(arg);
}

static void opscope_py_usage_outside(const char *key, void *user)
{
    if (!is_closed()) {
        opscope_py_usage(key, user);
    }
    pass_on();
}

static void opscope_py_usage_metadata_outside(const char *context, const char *key,
                                              const char *value, void *user)
{
    if (!is_closed()) {
        opscope_py_usage_metadata(context, key, value, user);
    }
    pass_on();
}

static size_t opscope_py_box_outside(void *arg, opscope_value *values, size_t capacity)
{
    size_t count = is_closed() ? 0 : opscope_py_box(arg, values, capacity);
    pass_on();
    return count;
}

static int opscope_py_extra_files_outside(opscope_extra_files *files, void *user)
{
    int status = is_closed() ? OPSCOPE_OK : opscope_py_extra_files(files, user);
    pass_on();
    return status;
}
