/* extension.c -- attaches and detaches functions of extension modules, of whatever kind. */
#include "private/extension.h"

#include "bridges/builtin.h"
#include "bridges/callable.h"
#include "bridges/outer.h"
#include "bridges/python_op.h"

static int attach_one(const opscope_extension_target *target, uint32_t owner,
                      const struct opscope__pages *pages)
{
    PyObject *object = (PyObject *)target->object;
    if (opscope__is_callable(object)) {
        return opscope__callable_attach(object, target->name, owner, target->library, pages);
    }
    return opscope__builtin_attach(object, target->name, owner, target->library, pages);
}

int opscope_extension_attach(uint32_t owner, opscope_extension_target *targets, size_t count)
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
        targets[i].status = attach_one(&targets[i], owner, &pages);
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
