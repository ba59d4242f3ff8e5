/* Indexing: t[1, ..., ::2, None], t[mask], t[rows, columns], and assignment to them.
 *
 * Basic parts become views by the core's select, slice and unsqueeze, one range each. The walk only
 * collects tensors of indices and masks; index_tensors.c applies them.
 */
#include "tensor/python/buffer_abi.h"
#include "tensor/python/index_tensors.h"

#define CALL(operator, ...)                                                                        \
    opscope__py_call_indexing(                                                                     \
        (operator), (opscope_argument[]){__VA_ARGS__},                                             \
        sizeof((opscope_argument[]){__VA_ARGS__}) / sizeof(opscope_argument), NULL)
#define TENSOR opscope__py_tensor_argument
#define INTEGER opscope__py_integer

static PyObject *select_at(PyObject *self, int64_t dim, int64_t index)
{
    return CALL(OPSCOPE__PY_SELECT, TENSOR(self), INTEGER(dim), INTEGER(index));
}

/* The bounds as written: core::slice clips them as Python does, and a traced slice stays right for
 * other sizes. */
static PyObject *slice_at(PyObject *self, int64_t dim, PyObject *slice)
{
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(slice, &start, &stop, &step) < 0) {
        return NULL;
    }
    const opscope_argument none = {.kind = OPSCOPE_ARGUMENT_NONE};
    bool is_open = stop == PY_SSIZE_T_MAX || stop == PY_SSIZE_T_MIN;
    return CALL(OPSCOPE__PY_SLICE, TENSOR(self), INTEGER(dim),
                start == PY_SSIZE_T_MAX ? none : INTEGER(start), is_open ? none : INTEGER(stop),
                INTEGER(step));
}

/* ---- the walk --------------------------------------------------------------------------------------- */

static int select_item(struct opscope__py_walk *walk, PyObject *item)
{
    Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred()) {
        return -1;
    }
    return opscope__py_walk_replace(walk, select_at(walk->self, walk->dim, index));
}

/* Applies one item, but not Ellipsis. */
static int step(struct opscope__py_walk *walk, PyObject *item)
{
    if (opscope__py_is_mask(item)) {
        return opscope__py_walk_mask(walk, item);
    }
    if (item == Py_None || PySlice_Check(item)) {
        int status = item == Py_None
                         ? opscope__py_walk_unsqueeze(walk)
                         : opscope__py_walk_replace(walk, slice_at(walk->self, walk->dim, item));
        walk->dim++;
        return status;
    }
    if (opscope__py_is_tensor(item) &&
        (opscope_tensor_dims(opscope__py_core(item)) > 0 ||
         opscope_dtype_is_floating(opscope_tensor_dtype(opscope__py_core(item))))) {
        return opscope__py_walk_indices(walk, item);
    }
    if (PyIndex_Check(item)) {
        return select_item(walk, item);
    }
    PyObject *type_name = PyObject_GetAttrString((PyObject *)Py_TYPE(item), "__name__");
    PyErr_Format(PyExc_TypeError,
                 "an index may contain ints, slices, None, ..., tensors and lists, not %S",
                 type_name ? type_name : Py_None);
    Py_XDECREF(type_name);
    return -1;
}

/* The number of the tensor's dimensions that an index consumes. */
static int consumed(PyObject *item)
{
    return item == Py_None || item == Py_Ellipsis ? 0
           : opscope__py_is_mask(item)            ? opscope__py_mask_dims(item)
                                                  : 1;
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
                     ellipses > 1 ? "an index may contain only one ellipsis"
                                  : "too many indices (%d) for a tensor of %d dimensions",
                     total, dims);
        return -1;
    }
    return total;
}

/* After success the caller calls opscope__py_walk_end. */
static int walk_items(PyObject *self, PyObject *items, struct opscope__py_walk *walk)
{
    int dims = opscope_tensor_dims(opscope__py_core(self));
    int total = count_consumed(items, dims);
    if (total < 0) {
        return -1;
    }
    walk->self = Py_NewRef(self);
    walk->dim = walk->count = 0;
    for (Py_ssize_t i = 0; i < PyTuple_Size(items); i++) {
        PyObject *item = PyTuple_GetItem(items, i);
        if (item == Py_Ellipsis) {
            walk->dim += dims - total;
        } else if (step(walk, item) < 0) {
            opscope__py_walk_end(walk);
            return -1;
        }
    }
    return 0;
}

/* Converts a list, range or array to a tensor. A new reference. */
static PyObject *as_tensor(PyObject *item)
{
    bool is_array = (PySequence_Check(item) || opscope__buffers.check(item)) &&
                    !opscope__py_is_tensor(item) && !PyUnicode_Check(item) && !PyBytes_Check(item);
    if (!is_array) {
        return Py_NewRef(item);
    }
    PyObject *made = opscope__py_tensor_copied(item);
    if (made && opscope_tensor_count(opscope__py_core(made)) == 0 &&
        opscope_tensor_dtype(opscope__py_core(made)) == OPSCOPE_FLOAT32) { /* [] */
        const opscope_tensor *core = opscope__py_core(made);
        opscope_tensor *empty;
        int status = opscope_tensor_empty(opscope_tensor_dims(core), opscope_tensor_sizes(core),
                                          OPSCOPE_INT64, NULL, &empty);
        Py_DECREF(made);
        made = status == OPSCOPE_OK ? opscope__py_tensor_wrap(empty) : opscope__py_raise(status);
    }
    return made;
}

/* The index as a tuple, with lists and arrays converted to tensors. A new reference. */
static PyObject *normalize(PyObject *key)
{
    Py_ssize_t count = PyTuple_Check(key) ? PyTuple_Size(key) : 1;
    PyObject *items = PyTuple_New(count);
    for (Py_ssize_t i = 0; items && i < count; i++) {
        PyObject *item = as_tensor(PyTuple_Check(key) ? PyTuple_GetItem(key, i) : key);
        if (!item) {
            Py_CLEAR(items);
        } else {
            PyTuple_SetItem(items, i, item);
        }
    }
    return items;
}

static PyObject *get_items(PyObject *self, PyObject *items)
{
    struct opscope__py_walk walk;
    if (walk_items(self, items, &walk) < 0) {
        return NULL;
    }
    PyObject *result;
    if (walk.count > 0) {
        result = opscope__py_walk_read(&walk);
    } else if (walk.self == self) { /* t[...]: a new Tensor over the same core tensor */
        result = opscope__py_tensor_wrap(opscope_tensor_retain(opscope__py_core(self)));
    } else {
        result = Py_NewRef(walk.self);
    }
    opscope__py_walk_end(&walk);
    return result;
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

/* Converts `value` (a number, a tensor, or anything that tensor() takes) to an argument; *keeper, a
 * new reference or NULL, keeps it. A tensor with more than `dims` dimensions loses leading ones of
 * size 1. */
static int read_value(PyObject *value, int dims, opscope_argument *out, PyObject **keeper)
{
    int found = opscope__py_operand(value, out);
    *keeper = NULL;
    if (found == false) {
        *keeper = opscope__py_tensor_copied(value);
        if (!*keeper) {
            return -1;
        }
        *out = TENSOR(*keeper);
    }
    if (found < 0 || out->kind != OPSCOPE_ARGUMENT_TENSOR) {
        return found;
    }
    const opscope_tensor *core = out->as.tensor;
    int extra = 0;
    while (opscope_tensor_dims(core) - extra > dims && opscope_tensor_sizes(core)[extra] == 1) {
        extra++;
    }
    if (extra == 0) {
        return 0;
    }
    opscope_argument list = {.kind = OPSCOPE_ARGUMENT_INTS,
                             .count = (uint32_t)(opscope_tensor_dims(core) - extra),
                             .as.integers = opscope_tensor_sizes(core) + extra};
    PyObject *reshaped = CALL(OPSCOPE__PY_RESHAPE, *out, list);
    Py_XDECREF(*keeper);
    *keeper = reshaped;
    if (!reshaped) {
        return -1;
    }
    *out = TENSOR(reshaped);
    return 0;
}

/* Writes to the elements that the walk selected. */
static int assign(struct opscope__py_walk *walk, PyObject *value)
{
    opscope_argument argument;
    PyObject *keeper;
    if (read_value(value, opscope__py_walk_result_dims(walk), &argument, &keeper) < 0) {
        return -1;
    }
    int result;
    if (walk->count > 0) {
        result = opscope__py_walk_write(walk, argument);
    } else {
        bool is_tensor = argument.kind == OPSCOPE_ARGUMENT_TENSOR;
        opscope_argument arguments[] = {TENSOR(walk->self), argument};
        PyObject *done = opscope__py_call_indexing(is_tensor ? OPSCOPE__PY_COPY : OPSCOPE__PY_FILL,
                                                   arguments, 2, walk->self);
        result = done ? 0 : -1;
        Py_XDECREF(done);
    }
    Py_XDECREF(keeper);
    return result;
}

/* t[mask] = number, without computing positions: true if it was done, else false. */
static int assign_masked(PyObject *self, PyObject *items, PyObject *value)
{
    PyObject *mask = PyTuple_Size(items) == 1 ? PyTuple_GetItem(items, 0) : NULL;
    if (!mask || !opscope__py_is_tensor(mask) || !opscope__py_is_mask(mask) ||
        opscope__py_is_tensor(value)) {
        return false;
    }
    const opscope_tensor *core = opscope__py_core(self), *own = opscope__py_core(mask);
    bool same = opscope_tensor_dims(own) == opscope_tensor_dims(core);
    for (int i = 0; same && i < opscope_tensor_dims(core); i++) {
        same = opscope_tensor_sizes(own)[i] == opscope_tensor_sizes(core)[i];
    }
    opscope_argument number;
    int found = same ? opscope__py_operand(value, &number) : false;
    if (found != true) {
        return found;
    }
    opscope_argument arguments[] = {TENSOR(self), TENSOR(mask), number};
    PyObject *done = opscope__py_call_indexing(OPSCOPE__PY_MASKED_FILL, arguments, 3, self);
    Py_XDECREF(done);
    return done ? true : -1;
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
    int result = assign_masked(self, items, value);
    if (result == false) {
        struct opscope__py_walk walk;
        result = walk_items(self, items, &walk);
        if (result == 0) {
            result = assign(&walk, value);
            opscope__py_walk_end(&walk);
        }
    }
    Py_DECREF(items);
    return result < 0 ? -1 : 0;
}

/* ---- length and iteration --------------------------------------------------------------------------------- */

static Py_ssize_t length(PyObject *self)
{
    opscope_tensor *core = opscope__py_core(self);
    if (opscope_tensor_dims(core) == 0) {
        PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no len()");
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
