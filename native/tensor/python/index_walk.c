/* The step of every part of an index: calls an operator of the core, and continues with the view
 * that it returns. */
#include "tensor/python/index_walk.h"

static const char *const NAMES[OPSCOPE__PY_INDEX_OPERATOR_COUNT] = {
    [OPSCOPE__PY_SELECT] = "core::select",       [OPSCOPE__PY_SLICE] = "core::slice",
    [OPSCOPE__PY_UNSQUEEZE] = "core::unsqueeze", [OPSCOPE__PY_RESHAPE] = "core::reshape",
    [OPSCOPE__PY_PERMUTE] = "core::permute",     [OPSCOPE__PY_COPY] = "core::copy_",
    [OPSCOPE__PY_FILL] = "core::fill_",          [OPSCOPE__PY_MASKED_FILL] = "core::masked_fill_",
    [OPSCOPE__PY_INDEX] = "core::index",         [OPSCOPE__PY_INDEX_PUT] = "core::index_put_",
    [OPSCOPE__PY_NONZERO] = "core::nonzero",
};

static const opscope_operator *operators[OPSCOPE__PY_INDEX_OPERATOR_COUNT];

void opscope__py_find_index_operators(void)
{
    for (int i = 0; i < OPSCOPE__PY_INDEX_OPERATOR_COUNT; i++) {
        operators[i] = opscope_operator_find(NAMES[i]);
    }
}

PyObject *opscope__py_call_indexing(enum opscope__py_index_operator operator,
                                    const opscope_argument * arguments, size_t count,
                                    PyObject *self)
{
    if (!operators[operator]) {
        return PyErr_Format(PyExc_TypeError, "there is no operator %s", NAMES[operator]);
    }
    return opscope__py_call(operators[operator], arguments, count, self);
}

int opscope__py_walk_replace(struct opscope__py_walk *walk, PyObject *next)
{
    if (!next) {
        return -1;
    }
    Py_DECREF(walk->self);
    walk->self = next;
    return 0;
}

int opscope__py_walk_unsqueeze(struct opscope__py_walk *walk)
{
    const opscope_argument arguments[] = {opscope__py_tensor_argument(walk->self),
                                          opscope__py_integer(walk->dim)};
    return opscope__py_walk_replace(
        walk, opscope__py_call_indexing(OPSCOPE__PY_UNSQUEEZE, arguments, 2, NULL));
}

void opscope__py_walk_end(struct opscope__py_walk *walk)
{
    for (int i = 0; i < walk->count; i++) {
        Py_DECREF(walk->indices[i]);
    }
    Py_DECREF(walk->self);
}
