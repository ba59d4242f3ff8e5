/* tensor/python/index.h -- t[...] taken apart: the views it makes, the tensors of indices it holds.
 *
 * A walk over an index makes views by the core's operators and only notes tensors of indices and
 * masks; what is read or written through these is taken up by index_tensors.c.
 */
#ifndef OPSCOPE_TENSOR_PYTHON_INDEX_H
#define OPSCOPE_TENSOR_PYTHON_INDEX_H

#include "tensor/python/python.h"

struct opscope__py_walk {
    PyObject *self; /* owned: the tensor so far, a view of the indexed one */
    int dim;        /* of `self`: what the next item is about */
    int count;      /* tensors of indices met, each for one dimension of `self` */
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
    OPSCOPE__PY_INDEX_OPERATOR_COUNT
};

/* Calls it; `self` as for opscope__py_call. */
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

/* `walk->self` with a dimension of size 1 at walk->dim. */
int opscope__py_walk_unsqueeze(struct opscope__py_walk *walk);
/* Puts the new reference `next` in the place of walk->self; NULL is a failure. */
int opscope__py_walk_replace(struct opscope__py_walk *walk, PyObject *next);
void opscope__py_walk_end(struct opscope__py_walk *walk);

/* ---- index_tensors.c ----------------------------------------------------------------------------- */

/* Whether `item` is a bool, of Python or a tensor: a mask. */
bool opscope__py_is_mask(PyObject *item);
/* How many dimensions a mask takes. */
int opscope__py_mask_dims(PyObject *mask);
/* Notes a tensor of indices, or the positions where a mask is true. */
int opscope__py_walk_indices(struct opscope__py_walk *walk, PyObject *indices);
int opscope__py_walk_mask(struct opscope__py_walk *walk, PyObject *mask);
/* What the noted tensors name: read, or written with the value. */
PyObject *opscope__py_walk_read(struct opscope__py_walk *walk);
int opscope__py_walk_write(struct opscope__py_walk *walk, opscope_argument value);
/* Dimensions of what they name. */
int opscope__py_walk_result_dims(const struct opscope__py_walk *walk);

#endif
