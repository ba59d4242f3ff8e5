/* numpy/attach.c -- attaches and detaches the NumPy bridge as a whole. agent/opscope/bridges/numpy/
 * chooses the operators and their names; numpy/ufunc.c, numpy/index.c and builtin.c find and
 * replace each kind of pointer. */
#include "bridges/builtin.h"
#include "bridges/numpy/pointers.h"
#include "private/extension.h"

#include <string.h>

static size_t attached_count; /* written by attach and detach, relaxed; any thread reads it */

static int attach_function(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    return opscope__builtin_attach((PyObject *)target->object, target->name,
                                   OPSCOPE_EXTENSION_NUMPY, NULL, pages);
}

static int attach_ufunc_method(const opscope_numpy_target *target,
                               const struct opscope__pages *pages)
{
    static const char *const methods[OPSCOPE__UFUNC_METHOD_LIMIT] = {"reduce", "accumulate",
                                                                     "reduceat", "outer", "at"};
    const char *method = strrchr(target->name, '.');
    for (int i = 0; method != NULL && i < OPSCOPE__UFUNC_METHOD_LIMIT; i++) {
        if (strcmp(method + 1, methods[i]) == 0) {
            return opscope__builtin_attach_by_self((PyObject *)target->object, target->name,
                                                   OPSCOPE_EXTENSION_NUMPY, pages,
                                                   opscope__ufunc_method_op, i);
        }
    }
    return OPSCOPE_ERR_UNSUPPORTED;
}

static int attach_one(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    switch (target->kind) {
    case OPSCOPE_NUMPY_UFUNC:
        return opscope__ufunc_attach(target, pages);
    case OPSCOPE_NUMPY_FUNCTION:
        return attach_function(target, pages);
    case OPSCOPE_NUMPY_UFUNC_METHOD:
        return attach_ufunc_method(target, pages);
    case OPSCOPE_NUMPY_GETITEM:
    case OPSCOPE_NUMPY_SETITEM:
        return opscope__index_attach(target, pages);
    }
    return OPSCOPE_ERR_INVALID;
}

/* Attaches `add` before all other targets, and measures the cost of a range with it, so that the
 * others get their cost when they are interned. Returns its index among the targets; `count` if it
 * is not among them. */
static size_t attach_to_measure(opscope_numpy_target *targets, size_t count,
                                const struct opscope__pages *pages)
{
    static const char name[] = "numpy::add";
    PyObject *add = NULL, *array = NULL;
    size_t first = count;
    for (size_t i = 0; i < count; i++) {
        if (targets[i].kind == OPSCOPE_NUMPY_UFUNC && strcmp(targets[i].name, name) == 0) {
            first = i;
        } else if (targets[i].kind == OPSCOPE_NUMPY_GETITEM) {
            array = (PyObject *)targets[i].object;
        }
    }
    if (first != count) {
        targets[first].status = attach_one(&targets[first], pages);
        add = targets[first].status == OPSCOPE_OK ? (PyObject *)targets[first].object : NULL;
    }
    opscope__numpy_measure(add, array, name);
    return first;
}

int opscope_numpy_attach(opscope_numpy_target *targets, size_t count)
{
    struct opscope__pages pages;
    int status = opscope__pages_read(&pages);
    if (status != OPSCOPE_OK) {
        return status;
    }
    PyGILState_STATE gil = PyGILState_Ensure();
    /* The calls that verify a pointer are not the program's. */
    bool recording = opscope_recording_set(false);
    const size_t first = attach_to_measure(targets, count, &pages);
    size_t added = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != first) {
            targets[i].status = attach_one(&targets[i], &pages);
        }
        added += targets[i].status == OPSCOPE_OK;
    }
    opscope__store_relaxed(&attached_count, attached_count + added);
    opscope__ufunc_follow_demand();
    opscope_recording_set(recording);
    PyGILState_Release(gil);
    opscope__pages_release(&pages);
    return OPSCOPE_OK;
}

void opscope_numpy_detach(void)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    opscope__ufunc_makers_detach();
    opscope__index_detach();
    opscope__builtin_detach(OPSCOPE_EXTENSION_NUMPY);
    opscope__ufunc_detach();
    opscope__store_relaxed(&attached_count, 0);
    PyGILState_Release(gil);
}

int opscope_numpy_follow_ufuncs(uintptr_t capsule, uintptr_t ufunc)
{
    struct opscope__pages pages;
    int status = opscope__pages_read(&pages);
    if (status != OPSCOPE_OK) {
        return status;
    }
    PyGILState_STATE gil = PyGILState_Ensure();
    status = opscope__ufunc_makers_attach((PyObject *)capsule, (PyObject *)ufunc, &pages);
    PyGILState_Release(gil);
    opscope__pages_release(&pages);
    return status;
}

int opscope_numpy_adopt_ufunc(uintptr_t ufunc, const char *library)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    const int status = opscope__ufunc_adopt_from((PyObject *)ufunc, library);
    PyGILState_Release(gil);
    return status;
}

size_t opscope_numpy_attached_count(void)
{
    /* Partner: the stores above. */
    return opscope__load_relaxed(&attached_count);
}
