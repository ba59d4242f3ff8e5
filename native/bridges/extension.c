/* extension.c -- attaches and detaches functions of extension modules, of whatever kind. */
#include "private/extension.h"

#include <string.h>

#include "bridges/builtin.h"
#include "bridges/callable.h"
#include "bridges/outer.h"
#include "bridges/python_op.h"

static int attach_one(PyObject *object, const char *name, uint32_t owner, const char *library,
                      const struct opscope__pages *pages)
{
    if (opscope__is_callable(object)) {
        return opscope__callable_attach(object, name, owner, library, pages);
    }
    return opscope__builtin_attach(object, name, owner, library, pages);
}

int opscope_extension_attach(uint32_t owner, size_t count, const uintptr_t *objects,
                             const char *names, const char *libraries, int *statuses)
{
    struct opscope__pages pages;
    const int status = opscope__pages_read(&pages);
    if (status != OPSCOPE_OK) {
        return status;
    }
    const PyGILState_STATE gil = PyGILState_Ensure();
    /* The calls that verify a pointer are not the program's. */
    const bool recording = opscope_recording_set(false);
    if (!opscope__python_op_has_cost()) {
        opscope__python_op_set_cost(0); /* NumPy's bridge, which measures it, is not attached */
    }
    for (size_t i = 0; i < count; i++) {
        const char *library = *libraries != '\0' ? libraries : NULL;
        statuses[i] = attach_one((PyObject *)objects[i], names, owner, library, &pages);
        names += strlen(names) + 1;
        libraries += strlen(libraries) + 1;
    }
    opscope_recording_set(recording);
    PyGILState_Release(gil);
    opscope__pages_release(&pages);
    return OPSCOPE_OK;
}

int opscope_outer_attach(uint32_t owner, uintptr_t type, const char *method, const char *name)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    const int status = opscope__outer_attach(owner, (PyObject *)type, method, name);
    PyGILState_Release(gil);
    return status;
}

void opscope_extension_detach(uint32_t owner)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    opscope__builtin_detach(owner);
    opscope__callable_detach(owner);
    opscope__outer_detach(owner);
    PyGILState_Release(gil);
}
