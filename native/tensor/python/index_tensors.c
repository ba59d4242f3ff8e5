/* Indexing by tensors of indices and by masks, several of them in one index.
 *
 * They broadcast together. If they index neighbouring dimensions, the result has their sizes in
 * that place, else in front, as in NumPy and PyTorch. One call of core::index or core::index_put_,
 * over a permuted view if needed.
 */
#include "tensor/python/index_tensors.h"

/* ---- masks as positions ----------------------------------------------------------------------------- */

bool opscope__py_is_mask(PyObject *item)
{
    return PyBool_Check(item) || (opscope__py_is_tensor(item) &&
                                  opscope_tensor_dtype(opscope__py_core(item)) == OPSCOPE_BOOL);
}

int opscope__py_mask_dims(PyObject *mask)
{
    return PyBool_Check(mask) ? 0 : opscope_tensor_dims(opscope__py_core(mask));
}

static int64_t count_true(const opscope_tensor *mask, int dim, const uint8_t *data)
{
    if (dim == opscope_tensor_dims(mask)) {
        return *data != 0;
    }
    int64_t count = 0;
    for (int64_t i = 0; i < opscope_tensor_sizes(mask)[dim]; i++) {
        count += count_true(mask, dim + 1, data + i * opscope_tensor_strides(mask)[dim]);
    }
    return count;
}

struct positions {
    int64_t at[OPSCOPE_DIM_LIMIT];    /* of the current element */
    int64_t *next[OPSCOPE_DIM_LIMIT]; /* the output for each dimension's positions */
};

static void write_true(const opscope_tensor *mask, int dim, const uint8_t *data,
                       struct positions *positions)
{
    if (dim == opscope_tensor_dims(mask)) {
        for (int i = 0; *data && i < dim; i++) {
            *positions->next[i]++ = positions->at[i];
        }
        return;
    }
    for (int64_t i = 0; i < opscope_tensor_sizes(mask)[dim]; i++) {
        positions->at[dim] = i;
        write_true(mask, dim + 1, data + i * opscope_tensor_strides(mask)[dim], positions);
    }
}

static PyObject *new_positions(int64_t count)
{
    opscope_tensor *made;
    int status = opscope_tensor_empty(1, &count, OPSCOPE_INT64, NULL, &made);
    return status == OPSCOPE_OK ? opscope__py_tensor_wrap(made) : opscope__py_raise(status);
}

/* Records `indices` (a new reference, or NULL after a failure) for the walk's next dimension. */
static int note(struct opscope__py_walk *walk, PyObject *indices)
{
    if (!indices) {
        return -1;
    }
    if (walk->count == OPSCOPE_DIM_LIMIT) {
        PyErr_Format(PyExc_IndexError, "an index may contain at most %d tensors",
                     OPSCOPE_DIM_LIMIT);
        Py_DECREF(indices);
        return -1;
    }
    walk->dims[walk->count] = walk->dim++;
    walk->indices[walk->count++] = indices;
    return 0;
}

/* Applies True, False, or a mask without dimensions: a new dimension of size 1 or 0. */
static int walk_truth(struct opscope__py_walk *walk, bool truth)
{
    if (opscope__py_walk_unsqueeze(walk) < 0) {
        return -1;
    }
    PyObject *positions = new_positions(truth);
    if (positions && truth) {
        *(int64_t *)opscope_tensor_data(opscope__py_core(positions)) = 0;
    }
    return note(walk, positions);
}

/* The positions as results of operators, so that a trace has them. */
static int note_recorded(struct opscope__py_walk *walk, PyObject *mask, int dims)
{
    opscope_argument argument = opscope__py_tensor_argument(mask);
    PyObject *rows = opscope__py_call_indexing(OPSCOPE__PY_NONZERO, &argument, 1, NULL);
    int status = rows ? 0 : -1;
    for (int i = 0; status == 0 && i < dims; i++) {
        opscope_argument column[] = {opscope__py_tensor_argument(rows), opscope__py_integer(1),
                                     opscope__py_integer(i)};
        status = note(walk, opscope__py_call_indexing(OPSCOPE__PY_SELECT, column, 3, NULL));
    }
    Py_XDECREF(rows);
    return status;
}

int opscope__py_walk_mask(struct opscope__py_walk *walk, PyObject *item)
{
    int dims = opscope__py_mask_dims(item);
    if (PyBool_Check(item)) {
        return walk_truth(walk, item == Py_True);
    }
    const opscope_tensor *mask = opscope__py_core(item);
    const uint8_t *data = opscope_tensor_data(mask);
    if (dims == 0) {
        return opscope__py_tell_read(item) < 0 ? -1 : walk_truth(walk, *data != 0);
    }
    const opscope_tensor *self = opscope__py_core(walk->self);
    for (int i = 0; i < dims; i++) {
        if (opscope_tensor_sizes(mask)[i] != opscope_tensor_sizes(self)[walk->dim + i]) {
            PyErr_Format(PyExc_IndexError,
                         "the mask has size %lld at its dim %d, the tensor has %lld there",
                         (long long)opscope_tensor_sizes(mask)[i], i,
                         (long long)opscope_tensor_sizes(self)[walk->dim + i]);
            return -1;
        }
    }
    if (opscope__py_has_read_listener()) {
        return note_recorded(walk, item, dims);
    }
    int64_t count = opscope_tensor_count(mask) > 0 ? count_true(mask, 0, data) : 0;
    struct positions positions;
    for (int i = 0; i < dims; i++) {
        PyObject *made = new_positions(count);
        if (note(walk, made) < 0) {
            return -1;
        }
        positions.next[i] = opscope_tensor_data(opscope__py_core(made));
    }
    if (count > 0) {
        write_true(mask, 0, data, &positions);
    }
    return 0;
}

int opscope__py_walk_indices(struct opscope__py_walk *walk, PyObject *indices)
{
    opscope_dtype dtype = opscope_tensor_dtype(opscope__py_core(indices));
    if (opscope_dtype_is_floating(dtype)) {
        PyErr_Format(PyExc_IndexError, "indices must be integers or bool, not %s",
                     opscope_dtype_name(dtype));
        return -1;
    }
    return note(walk, Py_NewRef(indices));
}

/* ---- reading and writing the selected elements ----------------------------------------------- */

/* The first of the indexed dimensions, which are moved to the front unless they are neighbours.
 * Negative on failure. */
static int gather_dims(struct opscope__py_walk *walk)
{
    int last = walk->count - 1;
    if (walk->dims[last] - walk->dims[0] == last) {
        return walk->dims[0];
    }
    int dims = opscope_tensor_dims(opscope__py_core(walk->self));
    int64_t order[OPSCOPE_DIM_LIMIT];
    int filled = 0;
    for (int i = 0; i < walk->count; i++) {
        order[filled++] = walk->dims[i];
    }
    for (int dim = 0, next = 0; dim < dims; dim++) {
        if (next < walk->count && walk->dims[next] == dim) {
            next++;
        } else {
            order[filled++] = dim;
        }
    }
    opscope_argument list = {
        .kind = OPSCOPE_ARGUMENT_INTS, .count = (uint32_t)dims, .as.integers = order};
    PyObject *permuted = opscope__py_call_indexing(
        OPSCOPE__PY_PERMUTE, (opscope_argument[]){opscope__py_tensor_argument(walk->self), list}, 2,
        NULL);
    return opscope__py_walk_replace(walk, permuted) < 0 ? -1 : 0;
}

static opscope_argument index_list(const struct opscope__py_walk *walk, opscope_tensor **tensors)
{
    for (int i = 0; i < walk->count; i++) {
        tensors[i] = opscope__py_core(walk->indices[i]);
    }
    return (opscope_argument){
        .kind = OPSCOPE_ARGUMENT_TENSORS, .count = (uint32_t)walk->count, .as.tensors = tensors};
}

int opscope__py_walk_result_dims(const struct opscope__py_walk *walk)
{
    int most = 0;
    for (int i = 0; i < walk->count; i++) {
        int dims = opscope_tensor_dims(opscope__py_core(walk->indices[i]));
        most = dims > most ? dims : most;
    }
    return opscope_tensor_dims(opscope__py_core(walk->self)) - walk->count + most;
}

PyObject *opscope__py_walk_read(struct opscope__py_walk *walk)
{
    int dim = gather_dims(walk);
    if (dim < 0) {
        return NULL;
    }
    opscope_tensor *tensors[OPSCOPE_DIM_LIMIT];
    return opscope__py_call_indexing(
        OPSCOPE__PY_INDEX,
        (opscope_argument[]){opscope__py_tensor_argument(walk->self), index_list(walk, tensors),
                             opscope__py_integer(dim)},
        3, NULL);
}

int opscope__py_walk_write(struct opscope__py_walk *walk, opscope_argument value)
{
    int dim = gather_dims(walk);
    if (dim < 0) {
        return -1;
    }
    opscope_tensor *tensors[OPSCOPE_DIM_LIMIT];
    PyObject *done = opscope__py_call_indexing(
        OPSCOPE__PY_INDEX_PUT,
        (opscope_argument[]){opscope__py_tensor_argument(walk->self), value,
                             index_list(walk, tensors), opscope__py_integer(dim)},
        4, walk->self);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
