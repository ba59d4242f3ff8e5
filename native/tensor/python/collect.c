/* Releases Python objects that the tape keeps, and lets the garbage collector find those that keep
 * themselves alive.
 *
 * A hook may refer to its tensor, and a custom function's context to what the function returned:
 * such a reference leads through the core, where the collector cannot see it. So a Tensor shows the
 * collector the objects that only its core tensor keeps. The collector tracks only Tensors with a
 * hook and those that custom functions returned; the others cost a collection nothing.
 */
#include "tensor/autograd/grad.h"
#include "tensor/python/autograd.h"

void opscope__py_release_object(void *object)
{
    if (Py_IsInitialized()) {
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF((PyObject *)object);
        PyGILState_Release(state);
    }
}

struct visit {
    visitproc visit;
    void *arg;
};

static int visit_object(void (*release)(void *user), void *user, void *arg)
{
    const struct visit *visit = arg;
    return release == opscope__py_release_object ? visit->visit(user, visit->arg) : 0;
}

int opscope__py_tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct visit both = {visit, arg};
    opscope_tensor *core = opscope__py_core(self);
    Py_VISIT(Py_TYPE(self));
    return core ? opscope__tensor_visit(core, visit_object, &both) : 0;
}

int opscope__py_tensor_clear(PyObject *self)
{
    opscope_tensor *core = opscope__py_core(self);
    if (core) {
        opscope__tensor_forget(core);
    }
    return 0;
}

void opscope__py_track(PyObject *tensor)
{
    if (!PyObject_GC_IsTracked(tensor)) {
        PyObject_GC_Track(tensor);
    }
}
