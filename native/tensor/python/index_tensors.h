/* tensor/python/index_tensors.h -- tensors of indices and masks in an index. */
#ifndef OPSCOPE_TENSOR_PYTHON_INDEX_TENSORS_H
#define OPSCOPE_TENSOR_PYTHON_INDEX_TENSORS_H

#include "tensor/python/index_walk.h"

/* Whether `item` is a mask: a bool, of Python or a tensor of them. */
bool opscope__py_is_mask(PyObject *item);
/* The number of dimensions that a mask consumes. */
int opscope__py_mask_dims(PyObject *mask);
/* Records a tensor of indices, or the positions at which a mask is true. */
int opscope__py_walk_indices(struct opscope__py_walk *walk, PyObject *indices);
int opscope__py_walk_mask(struct opscope__py_walk *walk, PyObject *mask);
/* The elements that the recorded tensors select: read them, or write `value` to them. */
PyObject *opscope__py_walk_read(struct opscope__py_walk *walk);
int opscope__py_walk_write(struct opscope__py_walk *walk, opscope_argument value);
/* The number of dimensions of the selection. */
int opscope__py_walk_result_dims(const struct opscope__py_walk *walk);

#endif
