/* numpy/index.c -- reads and writes of arrays with an index that is or contains an array or a list.
 *
 * Replaces mp_subscript and mp_ass_subscript of ndarray itself. Basic indexing calls the original
 * directly: it is too cheap to observe. Does not see subclasses of ndarray, which have their own
 * slots, or calls of ndarray.__getitem__ by name.
 */
#include "bridges/numpy/pointers.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"

static PyTypeObject *array_type;
static struct opscope__mapping_layout *mapping;
static size_t tuple_items_offset; /* PyTuple_GetItem would make a[i, j] a tenth slower */
static const opscope_op *read_op;
static const opscope_op *write_op;
static binaryfunc original_read;
static objobjargproc original_write;

/* ---- hot path ------------------------------------------------------------------------------- */

static inline bool selects(PyObject *index)
{
    return Py_TYPE(index) == array_type || Py_TYPE(index) == &PyList_Type;
}

static inline bool is_advanced(PyObject *index)
{
    if (selects(index)) {
        return true;
    }
    if (Py_TYPE(index) != &PyTuple_Type) {
        return false;
    }
    PyObject *const *items = (PyObject *const *)(void *)((char *)index + tuple_items_offset);
    for (Py_ssize_t i = Py_SIZE(index); --i >= 0;) {
        if (selects(items[i])) {
            return true;
        }
    }
    return false;
}

static __attribute__((noinline)) PyObject *read_seen(PyObject *array, PyObject *index)
{
    PyObject *const inputs[] = {array, index};
    struct opscope__python_arguments call = {.vector = inputs, .vector_count = 2};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, read_op, &info);
    return opscope__python_range_close(&range, original_read(array, index));
}

static PyObject *read_trampoline(PyObject *array, PyObject *index)
{
    if (!is_advanced(index) || opscope__python_range_is_skipped()) {
        return original_read(array, index);
    }
    return read_seen(array, index);
}

static __attribute__((noinline)) int write_seen(PyObject *array, PyObject *index, PyObject *value)
{
    PyObject *const inputs[] = {array, index, value};
    struct opscope__python_arguments call = {.vector = inputs,
                                             .vector_count = value == NULL ? 2 : 3};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, write_op, &info);
    int status = original_write(array, index, value);
    opscope__python_range_close(&range, status == 0 ? Py_None : NULL);
    return status;
}

static int write_trampoline(PyObject *array, PyObject *index, PyObject *value)
{
    if (!is_advanced(index) || opscope__python_range_is_skipped()) {
        return original_write(array, index, value);
    }
    return write_seen(array, index, value);
}

/* ---- attach and detach ---------------------------------------------------------------------- */

static PyObject *probed; /* the array of the last call of a probe */

static PyObject *probe_read(PyObject *array, PyObject *index)
{
    (void)index;
    probed = array;
    Py_INCREF(Py_None);
    return Py_None;
}

static int probe_write(PyObject *array, PyObject *index, PyObject *value)
{
    (void)index;
    (void)value;
    probed = array;
    return 0;
}

static bool read_arrives(PyObject *array)
{
    binaryfunc kept = original_read;
    probed = NULL;
    original_read = probe_read;
    PyObject *result = PyObject_GetItem(array, Py_None);
    original_read = kept;
    bool arrived = result == Py_None && probed == array;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

static bool write_arrives(PyObject *array)
{
    objobjargproc kept = original_write;
    probed = NULL;
    original_write = probe_write;
    int status = PyObject_SetItem(array, Py_None, Py_None);
    original_write = kept;
    PyErr_Clear();
    return status == 0 && probed == array;
}

static int attach_read(PyObject *array)
{
    if (mapping->subscript == read_trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    original_read = mapping->subscript;
    mapping->subscript = read_trampoline;
    if (!read_arrives(array)) {
        mapping->subscript = original_read;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    return OPSCOPE_OK;
}

static int attach_write(PyObject *array)
{
    if (mapping->assign_subscript == write_trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    original_write = mapping->assign_subscript;
    mapping->assign_subscript = write_trampoline;
    if (!write_arrives(array)) {
        mapping->assign_subscript = original_write;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    return OPSCOPE_OK;
}

int opscope__index_attach(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    PyObject *array = (PyObject *)target->object;
    struct opscope__mapping_layout *found = opscope__array_mapping(array, pages);
    tuple_items_offset = opscope__tuple_items_offset();
    if (found == NULL || tuple_items_offset == 0) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    const opscope_op *op = opscope__python_op(target->name);
    mapping = found;
    array_type = Py_TYPE(array);
    if (target->kind == OPSCOPE_NUMPY_GETITEM) {
        read_op = op;
        return attach_read(array);
    }
    write_op = op;
    return attach_write(array);
}

void opscope__index_detach(void)
{
    if (mapping != NULL && mapping->subscript == read_trampoline) {
        mapping->subscript = original_read;
    }
    if (mapping != NULL && mapping->assign_subscript == write_trampoline) {
        mapping->assign_subscript = original_write;
    }
}
