/* numpy/index.c -- reads and writes of arrays with an index that is or contains an array or a list.
 *
 * Replaces mp_subscript and mp_ass_subscript of ndarray itself. Basic indexing calls the original
 * directly: it is too cheap to observe. Does not see subclasses of ndarray, which have their own
 * slots, or calls of ndarray.__getitem__ by name.
 */
#include "bridges/numpy/pointers.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"

/* Written by attach, before a slot leads to a trampoline; never taken back. A second attach may
 * write the operators and the originals while threads read them: either value is right for a
 * call. */
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

/* Partner of these loads and those of the operators: the stores of attach. */
static inline PyObject *call_read(PyObject *array, PyObject *index)
{
    return opscope__load_relaxed(&original_read)(array, index);
}

static inline int call_write(PyObject *array, PyObject *index, PyObject *value)
{
    return opscope__load_relaxed(&original_write)(array, index, value);
}

static __attribute__((noinline)) PyObject *read_seen(PyObject *array, PyObject *index)
{
    PyObject *const inputs[] = {array, index};
    struct opscope__python_arguments call = {.vector = inputs, .vector_count = 2};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, opscope__load_relaxed(&read_op), &info);
    if (!opscope__python_range_fired(&range)) {
        return opscope__python_probe_arrives(array) ? Py_NewRef(Py_None) : call_read(array, index);
    }
    return opscope__python_range_close(&range, call_read(array, index));
}

static PyObject *read_trampoline(PyObject *array, PyObject *index)
{
    if (!is_advanced(index) || opscope__python_range_is_skipped()) {
        return call_read(array, index);
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
    opscope__range_open_slow(&range, opscope__load_relaxed(&write_op), &info);
    if (!opscope__python_range_fired(&range)) {
        return opscope__python_probe_arrives(array) ? 0 : call_write(array, index, value);
    }
    int status = call_write(array, index, value);
    opscope__python_range_close(&range, status == 0 ? Py_None : NULL);
    return status;
}

static int write_trampoline(PyObject *array, PyObject *index, PyObject *value)
{
    if (!is_advanced(index) || opscope__python_range_is_skipped()) {
        return call_write(array, index, value);
    }
    return write_seen(array, index, value);
}

/* ---- attach and detach ---------------------------------------------------------------------- */

/* Reads or writes the array with an empty list as the index, which would change nothing. */
static bool call_arrives(PyObject *array, PyObject *value)
{
    PyObject *index = PyList_New(0);
    if (index == NULL) {
        PyErr_Clear();
        return false;
    }
    opscope__python_probe_begin(array);
    PyObject *result = value == NULL ? PyObject_GetItem(array, index) : NULL;
    const int status = value != NULL ? PyObject_SetItem(array, index, value) : 0;
    const bool arrived = opscope__python_probe_end() && status == 0;
    Py_XDECREF(result);
    Py_DECREF(index);
    PyErr_Clear();
    return arrived;
}

static int attach_read(PyObject *array)
{
    const binaryfunc found = mapping->subscript;
    if (found == read_trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    opscope__store_relaxed(&original_read, found);
    opscope__pointer_publish();
    if (!OPSCOPE__REPLACE_POINTER(&mapping->subscript, found, read_trampoline)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (!call_arrives(array, NULL)) {
        (void)OPSCOPE__REPLACE_POINTER(&mapping->subscript, read_trampoline, found);
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    return OPSCOPE_OK;
}

static int attach_write(PyObject *array)
{
    const objobjargproc found = mapping->assign_subscript;
    if (found == write_trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    opscope__store_relaxed(&original_write, found);
    opscope__pointer_publish();
    if (!OPSCOPE__REPLACE_POINTER(&mapping->assign_subscript, found, write_trampoline)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (!call_arrives(array, Py_None)) {
        (void)OPSCOPE__REPLACE_POINTER(&mapping->assign_subscript, write_trampoline, found);
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
        opscope__store_relaxed(&read_op, op);
        return attach_read(array);
    }
    opscope__store_relaxed(&write_op, op);
    return attach_write(array);
}

void opscope__index_detach(void)
{
    if (mapping != NULL) {
        (void)OPSCOPE__REPLACE_POINTER(&mapping->subscript, read_trampoline, original_read);
        (void)OPSCOPE__REPLACE_POINTER(&mapping->assign_subscript, write_trampoline,
                                       original_write);
    }
}
