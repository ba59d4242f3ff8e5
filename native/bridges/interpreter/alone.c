/* interpreter/alone.c -- builtins of Python that run without the window thread.
 *
 * The kernel gives a new user namespace only to a process with one thread: os.unshare and os.setns
 * of a program that has one thread of its own would fail only because it is observed. So the window
 * thread ends before such a call, and starts again after it, as at a fork (recorder/window.c). In a
 * process that has asked for a pid namespace too, the kernel allows no new thread.
 */
#define _GNU_SOURCE
#include "private/interpreter.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "bridges/definition.h"
#include "recorder/window.h"

enum { NEEDS_ONE_THREAD = CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM };

typedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* The GIL guards both slots. A slot stays with its definition for ever. */
struct slot {
    PyMethodDef *definition; /* NULL: free */
    fast_keywords_function original;
    Py_ssize_t flags_at;
};

static struct slot slots[2];

/* Without flags the kind of namespace is unknown. */
static bool needs_one_thread(const struct slot *slot, PyObject *const *args, Py_ssize_t count)
{
    if (slot->flags_at >= count || !PyLong_Check(args[slot->flags_at])) {
        return true;
    }
    const unsigned long flags = PyLong_AsUnsignedLongMask(args[slot->flags_at]);
    return flags == 0 || (flags & NEEDS_ONE_THREAD) != 0;
}

static PyObject *call(const struct slot *slot, PyObject *self, PyObject *const *args,
                      Py_ssize_t count, PyObject *names)
{
    const Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    if (!needs_one_thread(slot, args, count + named)) {
        return slot->original(self, args, count, names);
    }
    opscope__window_pause();
    PyObject *result = slot->original(self, args, count, names);
    opscope__window_continue();
    return result;
}

static PyObject *call_first(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *names)
{
    return call(&slots[0], self, args, count, names);
}

static PyObject *call_second(PyObject *self, PyObject *const *args, Py_ssize_t count,
                             PyObject *names)
{
    return call(&slots[1], self, args, count, names);
}

static const fast_keywords_function trampolines[2] = {call_first, call_second};

static int attach(PyMethodDef *definition, Py_ssize_t flags_at)
{
    if (definition == NULL || definition->ml_flags != (METH_FASTCALL | METH_KEYWORDS)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    for (size_t i = 0; i < 2; i++) {
        struct slot *slot = &slots[i];
        if (slot->definition == definition) {
            return OPSCOPE_OK;
        }
        if (slot->definition == NULL) {
            slot->definition = definition;
            slot->flags_at = flags_at;
            slot->original = (fast_keywords_function)(void (*)(void))definition->ml_meth;
            definition->ml_meth = (PyCFunction)(void (*)(void))trampolines[i];
            return OPSCOPE_OK;
        }
    }
    return OPSCOPE_ERR_FULL;
}

int opscope_interpreter_call_alone(uintptr_t builtin, size_t flags_at)
{
    struct opscope__pages pages;
    int status = opscope__pages_read(&pages);
    if (status != OPSCOPE_OK) {
        return status;
    }
    PyGILState_STATE gil = PyGILState_Ensure();
    bool is_bound;
    PyMethodDef *definition = opscope__definition((PyObject *)builtin, &pages, &is_bound);
    status = attach(definition, (Py_ssize_t)flags_at);
    PyGILState_Release(gil);
    opscope__pages_release(&pages);
    return status;
}
