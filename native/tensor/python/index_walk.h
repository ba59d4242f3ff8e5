/* tensor/python/index_walk.h -- the state of t[...] as it is processed: the view so far, and the
 * tensors of indices.
 *
 * A walk over an index creates views by the core's operators and only collects tensors of indices
 * and masks; index_tensors.c reads or writes through these.
 */
#ifndef OPSCOPE_TENSOR_PYTHON_INDEX_WALK_H
#define OPSCOPE_TENSOR_PYTHON_INDEX_WALK_H

#include "tensor/python/python.h"

struct opscope__py_walk {
    PyObject *self; /* owned: the current view of the indexed tensor */
    int dim;        /* of `self`: the dimension of the next item */
    int count;      /* tensors of indices so far, each for one dimension of `self` */
    int dims[OPSCOPE_DIM_LIMIT];
    PyObject *indices[OPSCOPE_DIM_LIMIT]; /* owned */
};

enum opscope__py_index_operator {
    OPSCOPE__PY_SELECT,
    OPSCOPE__PY_SLICE,
    OPSCOPE__PY_UNSQUEEZE,
    OPSCOPE__PY_RESHAPE,
    OPSCOPE__PY_PERMUTE,
    OPSCOPE__PY_COPY,
    OPSCOPE__PY_FILL,
    OPSCOPE__PY_MASKED_FILL,
    OPSCOPE__PY_INDEX,
    OPSCOPE__PY_INDEX_PUT,
    OPSCOPE__PY_NONZERO,
    OPSCOPE__PY_INDEX_OPERATOR_COUNT
};

/* Calls the operator; `self` as in opscope__py_call. */
PyObject *opscope__py_call_indexing(enum opscope__py_index_operator operator,
                                    const opscope_argument * arguments, size_t count,
                                    PyObject *self);

static inline opscope_argument opscope__py_integer(int64_t value)
{
    return (opscope_argument){.kind = OPSCOPE_ARGUMENT_INT, .as.integer = value};
}

static inline opscope_argument opscope__py_tensor_argument(PyObject *object)
{
    return (opscope_argument){.kind = OPSCOPE_ARGUMENT_TENSOR,
                              .as.tensor = opscope__py_core(object)};
}

/* Gives `walk->self` a dimension of size 1 at walk->dim. */
int opscope__py_walk_unsqueeze(struct opscope__py_walk *walk);
/* Replaces walk->self by the new reference `next`; NULL is a failure. */
int opscope__py_walk_replace(struct opscope__py_walk *walk, PyObject *next);
void opscope__py_walk_end(struct opscope__py_walk *walk);

#endif
