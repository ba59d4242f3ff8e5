/* Indexing: t[1, ..., ::2, None], t[mask], t[indices], and assignment to them.
 *
 * Basic parts become views by the core's select, slice and unsqueeze, one range each. One tensor of
 * indices or one mask is taken by index_select; more than one is refused with the reason.
 */
#include "tensor/python/python.h"

enum { SELECT, SLICE, UNSQUEEZE, INDEX_SELECT, RESHAPE, COPY, FILL, MASKED_FILL, OP_COUNT };

static const char *const NAMES[OP_COUNT] = {
    [SELECT] = "core::select",   [SLICE] = "core::slice",
    [UNSQUEEZE] = "core::unsqueeze", [INDEX_SELECT] = "core::index_select",
    [RESHAPE] = "core::reshape", [COPY] = "core::copy_",
    [FILL] = "core::fill_",      [MASKED_FILL] = "core::masked_fill_",
};

static const opscope_operator *operators[OP_COUNT];

void opscope__py_find_index_operators(void)
{
    for (int i = 0; i < OP_COUNT; i++) {
        operators[i] = opscope_operator_find(NAMES[i]);
    }
}

static opscope_argument integer(int64_t value)
{
    return (opscope_argument){.kind = OPSCOPE_ARGUMENT_INT, .as.integer = value};
}

static opscope_argument tensor(PyObject *object)
{
    return (opscope_argument){.kind = OPSCOPE_ARGUMENT_TENSOR,
                              .as.tensor = opscope__py_core(object)};
}

static PyObject *call(int index, const opscope_argument *arguments, size_t count, PyObject *self)
{
    if (!operators[index]) {
        return PyErr_Format(PyExc_TypeError, "there is no operator %s", NAMES[index]);
    }
    return opscope__py_call(operators[index], arguments, count, self);
}

static PyObject *select_at(PyObject *self, int64_t dim, int64_t index)
{
    return call(SELECT, (opscope_argument[]){tensor(self), integer(dim), integer(index)}, 3, NULL);
}

static PyObject *slice_at(PyObject *self, int64_t dim, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) {
        return NULL;
    }
    int64_t size = opscope_tensor_sizes(opscope__py_core(self))[dim];
    Py_ssize_t length = PySlice_AdjustIndices(size, &start, &stop, step);
    if (length == 0) {
        start = stop = 0;
        step = 1;
    }
    /* A stop before the first element has no number of its own. */
    opscope_argument end = stop < 0 ? (opscope_argument){.kind = OPSCOPE_ARGUMENT_NONE}
                                    : integer(stop);
    return call(SLICE,
                (opscope_argument[]){tensor(self), integer(dim), integer(start), end,
                                     integer(step)},
                5, NULL);
}

static PyObject *reshape(PyObject *self, const int64_t *sizes, int dims)
{
    opscope_argument list = {
        .kind = OPSCOPE_ARGUMENT_INTS, .count = (uint32_t)dims, .as.integers = sizes};
    return call(RESHAPE, (opscope_argument[]){tensor(self), list}, 2, self);
}

/* ---- one tensor of indices, or one mask ------------------------------------------------------------ */

/* How many dimensions of the tensor an index consumes. */
static int consumed(PyObject *item)
{
    if (item == Py_None || item == Py_Ellipsis) {
        return 0;
    }
    if (opscope__py_is_tensor(item) &&
        opscope_tensor_dtype(opscope__py_core(item)) == OPSCOPE_BOOL) {
        return opscope_tensor_dims(opscope__py_core(item));
    }
    return 1;
}

/* Writes the flat positions of true elements to `out` where not NULL; returns how many there are. */
static int64_t find_true(const opscope_tensor *mask, int dim, const uint8_t *data, int64_t *flat,
                         int64_t *out, int64_t found)
{
    if (dim == opscope_tensor_dims(mask)) {
        if (*data) {
            if (out) {
                out[found] = *flat;
            }
            found++;
        }
        (*flat)++;
        return found;
    }
    for (int64_t i = 0; i < opscope_tensor_sizes(mask)[dim]; i++) {
        found = find_true(mask, dim + 1, data + i * opscope_tensor_strides(mask)[dim], flat, out,
                          found);
    }
    return found;
}

static PyObject *positions_of(const opscope_tensor *mask)
{
    int64_t flat = 0;
    int64_t count = find_true(mask, 0, opscope_tensor_data(mask), &flat, NULL, 0);
    opscope_tensor *positions;
    int status = opscope_tensor_empty(1, &count, OPSCOPE_INT64, NULL, &positions);
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    flat = 0;
    find_true(mask, 0, opscope_tensor_data(mask), &flat, opscope_tensor_data(positions), 0);
    return opscope__py_tensor_wrap(positions);
}

/* `self` with its `removed` dimensions from `dim` on replaced by `sizes`. */
static PyObject *replace_dims(PyObject *self, int dim, int removed, const int64_t *sizes,
                              int count)
{
    opscope_tensor *core = opscope__py_core(self);
    int dims = opscope_tensor_dims(core);
    if (dims - removed + count > OPSCOPE_DIM_LIMIT) {
        return PyErr_Format(PyExc_IndexError, "the result would have %d dimensions; at most %d",
                            dims - removed + count, OPSCOPE_DIM_LIMIT);
    }
    int64_t all[OPSCOPE_DIM_LIMIT];
    int filled = 0;
    for (int i = 0; i < dim; i++) {
        all[filled++] = opscope_tensor_sizes(core)[i];
    }
    for (int i = 0; i < count; i++) {
        all[filled++] = sizes[i];
    }
    for (int i = dim + removed; i < dims; i++) {
        all[filled++] = opscope_tensor_sizes(core)[i];
    }
    return reshape(self, all, filled);
}

static PyObject *take_mask(PyObject *self, int dim, const opscope_tensor *mask)
{
    opscope_tensor *core = opscope__py_core(self);
    int mask_dims = opscope_tensor_dims(mask);
    for (int i = 0; i < mask_dims; i++) {
        if (opscope_tensor_sizes(mask)[i] != opscope_tensor_sizes(core)[dim + i]) {
            return PyErr_Format(PyExc_IndexError,
                                "the mask has size %lld at its dim %d, the tensor has %lld there",
                                (long long)opscope_tensor_sizes(mask)[i], i,
                                (long long)opscope_tensor_sizes(core)[dim + i]);
        }
    }
    int64_t merged = opscope_tensor_count(mask);
    PyObject *flat = replace_dims(self, dim, mask_dims, &merged, 1);
    PyObject *positions = flat ? positions_of(mask) : NULL;
    PyObject *result = NULL;
    if (positions) {
        result = call(INDEX_SELECT,
                      (opscope_argument[]){tensor(flat), integer(dim), tensor(positions)}, 3, NULL);
    }
    Py_XDECREF(positions);
    Py_XDECREF(flat);
    return result;
}

static PyObject *take_indices(PyObject *self, int dim, PyObject *indices)
{
    opscope_tensor *core = opscope__py_core(indices);
    if (opscope_dtype_is_floating(opscope_tensor_dtype(core))) {
        return PyErr_Format(PyExc_IndexError, "indices must be integers or bool, not %s",
                            opscope_dtype_name(opscope_tensor_dtype(core)));
    }
    int64_t count = opscope_tensor_count(core);
    PyObject *flat = reshape(indices, &count, 1);
    PyObject *taken = NULL;
    if (flat) {
        taken = call(INDEX_SELECT, (opscope_argument[]){tensor(self), integer(dim), tensor(flat)},
                     3, NULL);
        Py_DECREF(flat);
    }
    if (!taken || opscope_tensor_dims(core) == 1) {
        return taken;
    }
    PyObject *result = replace_dims(taken, dim, 1, opscope_tensor_sizes(core),
                                    opscope_tensor_dims(core));
    Py_DECREF(taken);
    return result;
}

/* ---- a whole index ---------------------------------------------------------------------------------- */

/* A walk over an index: `self` so far, and the dimension the next item is about. */
struct walk {
    PyObject *self;
    int dim;
    bool took; /* a tensor of indices or a mask was met */
};

static PyObject *take_tensor(struct walk *walk, PyObject *item)
{
    if (walk->took) {
        PyErr_SetString(PyExc_IndexError,
                        "one index may hold one tensor or mask; index twice instead: t[a][:, b]");
        return NULL;
    }
    walk->took = true;
    opscope_tensor *core = opscope__py_core(item);
    return opscope_tensor_dtype(core) == OPSCOPE_BOOL ? take_mask(walk->self, walk->dim, core)
                                                      : take_indices(walk->self, walk->dim, item);
}

/* Applies one item other than Ellipsis. */
static int step(struct walk *walk, PyObject *item)
{
    PyObject *next = NULL;
    int advance = 1;
    if (item == Py_None) {
        next = call(UNSQUEEZE, (opscope_argument[]){tensor(walk->self), integer(walk->dim)}, 2, NULL);
    } else if (PySlice_Check(item)) {
        next = slice_at(walk->self, walk->dim, item);
    } else if (opscope__py_is_tensor(item)) {
        int dims = opscope_tensor_dims(opscope__py_core(item));
        bool is_mask = opscope_tensor_dtype(opscope__py_core(item)) == OPSCOPE_BOOL;
        next = take_tensor(walk, item);
        advance = is_mask ? 1 : dims;
    } else if (PyIndex_Check(item)) {
        int64_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
        advance = 0;
        if (!(index == -1 && PyErr_Occurred())) {
            next = select_at(walk->self, walk->dim, index);
        }
    } else {
        PyObject *type_name = PyObject_GetAttrString((PyObject *)Py_TYPE(item), "__name__");
        PyErr_Format(PyExc_TypeError,
                     "an index is made of ints, slices, None, ... and tensors, not %S",
                     type_name ? type_name : Py_None);
        Py_XDECREF(type_name);
    }
    if (!next) {
        return -1;
    }
    Py_DECREF(walk->self);
    walk->self = next;
    walk->dim += advance;
    return 0;
}

static int count_consumed(PyObject *items, int dims)
{
    int total = 0;
    int ellipses = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(items); i++) {
        total += consumed(PyTuple_GetItem(items, i));
        ellipses += PyTuple_GetItem(items, i) == Py_Ellipsis;
    }
    if (total > dims || ellipses > 1) {
        PyErr_Format(PyExc_IndexError,
                     ellipses > 1 ? "an index may hold one ellipsis"
                                  : "too many indices (%d) for a tensor of %d dimensions",
                     total, dims);
        return -1;
    }
    return total;
}

/* The index as a tuple, lists in it as tensors. A new reference. */
static PyObject *normalize(PyObject *key)
{
    PyObject *items = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
    bool has_list = false;
    for (Py_ssize_t i = 0; items && i < PyTuple_Size(items); i++) {
        has_list |= PyList_Check(PyTuple_GetItem(items, i));
    }
    if (!has_list) {
        return items;
    }
    PyObject *result = PyTuple_New(PyTuple_Size(items));
    for (Py_ssize_t i = 0; result && i < PyTuple_Size(items); i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        item = PyList_Check(item) ? opscope__py_tensor_copied(item) : Py_NewRef(item);
        if (!item) {
            Py_CLEAR(result);
        } else {
            PyTuple_SetItem(result, i, item);
        }
    }
    Py_DECREF(items);
    return result;
}

static PyObject *get_items(PyObject *self, PyObject *items)
{
    int dims = opscope_tensor_dims(opscope__py_core(self));
    int total = count_consumed(items, dims);
    if (total < 0) {
        return NULL;
    }
    struct walk walk = {.self = Py_NewRef(self)};
    for (Py_ssize_t i = 0; i < PyTuple_Size(items); i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        if (item == Py_Ellipsis) {
            walk.dim += dims - total;
        } else if (step(&walk, item) < 0) {
            Py_DECREF(walk.self);
            return NULL;
        }
    }
    if (walk.self == self) { /* t[...]: a Tensor of its own over the same core */
        Py_DECREF(self);
        return opscope__py_tensor_wrap(opscope_tensor_retain(opscope__py_core(self)));
    }
    return walk.self;
}

static PyObject *subscript(PyObject *self, PyObject *key)
{
    if (PyLong_CheckExact(key) && opscope_tensor_dims(opscope__py_core(self)) > 0) {
        Py_ssize_t index = PyLong_AsSsize_t(key);
        return index == -1 && PyErr_Occurred() ? NULL : select_at(self, 0, index);
    }
    PyObject *items = normalize(key);
    PyObject *result = items ? get_items(self, items) : NULL;
    Py_XDECREF(items);
    return result;
}

/* ---- assignment --------------------------------------------------------------------------------------- */

/* Writes `value`, a number, a tensor or what tensor() takes, into `target`. */
static int assign(PyObject *target, PyObject *value)
{
    opscope_argument arguments[2] = {tensor(target)};
    int found = opscope__py_operand(value, &arguments[1]);
    PyObject *copied = NULL;
    if (found == false) {
        copied = opscope__py_tensor_copied(value);
        if (!copied) {
            return -1;
        }
        arguments[1] = tensor(copied);
    }
    PyObject *done = NULL;
    if (found >= 0) {
        bool is_tensor = arguments[1].kind == OPSCOPE_ARGUMENT_TENSOR;
        done = call(is_tensor ? COPY : FILL, arguments, 2, target);
    }
    Py_XDECREF(copied);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int assign_masked(PyObject *self, PyObject *mask, PyObject *value)
{
    opscope_argument arguments[3] = {tensor(self), tensor(mask)};
    int found = opscope__py_operand(value, &arguments[2]);
    if (found != true) {
        if (found == false) {
            PyErr_SetString(PyExc_TypeError, "t[mask] = value: the value must be a number");
        }
        return -1;
    }
    PyObject *done = call(MASKED_FILL, arguments, 3, self);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int assign_subscript(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "elements of a tensor cannot be deleted");
        return -1;
    }
    PyObject *items = normalize(key);
    if (!items) {
        return -1;
    }
    int result = -1;
    PyObject *first = PyTuple_Size(items) == 1 ? PyTuple_GetItem(items, 0) : NULL;
    if (first && opscope__py_is_tensor(first) &&
        opscope_tensor_dtype(opscope__py_core(first)) == OPSCOPE_BOOL) {
        result = assign_masked(self, first, value);
    } else {
        bool is_view = true;
        for (Py_ssize_t i = 0; i < PyTuple_Size(items); i++) {
            is_view &= !opscope__py_is_tensor(PyTuple_GetItem(items, i));
        }
        if (!is_view) {
            PyErr_SetString(PyExc_TypeError, "assignment takes ints, slices, None, ... or one "
                                             "mask as index; use scatter for a tensor of indices");
        } else {
            PyObject *target = get_items(self, items);
            result = target ? assign(target, value) : -1;
            Py_XDECREF(target);
        }
    }
    Py_DECREF(items);
    return result;
}

/* ---- length and iteration --------------------------------------------------------------------------------- */

static Py_ssize_t length(PyObject *self)
{
    opscope_tensor *core = opscope__py_core(self);
    if (opscope_tensor_dims(core) == 0) {
        PyErr_SetString(PyExc_TypeError, "a tensor of no dimensions has no len()");
        return -1;
    }
    return opscope_tensor_sizes(core)[0];
}

static PyObject *item_at(PyObject *self, Py_ssize_t index)
{
    if (length(self) < 0) {
        return NULL;
    }
    return select_at(self, 0, index);
}

static PyObject *iterate(PyObject *self)
{
    return length(self) < 0 ? NULL : PySeqIter_New(self);
}

PyType_Slot opscope__py_index_slots[] = {
    {Py_mp_subscript, (void *)subscript},
    {Py_mp_ass_subscript, (void *)assign_subscript},
    {Py_mp_length, (void *)length},
    {Py_sq_item, (void *)item_at},
    {Py_sq_length, (void *)length},
    {Py_tp_iter, (void *)iterate},
    {0, NULL},
};
