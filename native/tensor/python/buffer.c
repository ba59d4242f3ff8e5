/* Memory shared with Python objects through the buffer protocol, both ways.
 *
 * Export: memoryview(tensor), numpy.asarray(tensor). Import: from_numpy(object), which keeps the
 * object's buffer until the last view of the storage is freed; over_bytes(buffer, dtype, shape),
 * for pickles. construct.c copies.
 */
#include "tensor/python/buffer.h"

#include "opscope/autograd.h"

/* ---- export ------------------------------------------------------------------------------------ */

static bool is_fortran_contiguous(const opscope_tensor *core)
{
    int64_t expected = 1;
    for (int i = 0; i < opscope_tensor_dims(core); i++) {
        int64_t size = opscope_tensor_sizes(core)[i];
        if (size != 1 && opscope_tensor_strides(core)[i] != expected) {
            return false;
        }
        expected *= size;
    }
    return true;
}

/* The reason why `core` cannot be exported as `flags` ask; NULL if it can. */
static const char *refusal(const opscope_tensor *core, int flags)
{
    bool contiguous = opscope_tensor_is_contiguous(core);
    if (opscope_tensor_requires_grad(core)) {
        return "it requires grad; use tensor.detach()";
    }
    if (!opscope__py_dtype_format(opscope_tensor_dtype(core))) {
        return "bfloat16 has no buffer format; convert it to float32";
    }
    if ((flags & PyBUF_WRITABLE) && opscope_tensor_is_read_only(core)) {
        return "it is read-only";
    }
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran_contiguous(core)) {
        return "it is not contiguous in Fortran's order";
    }
    bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    if (((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || !wants_strides) && !contiguous) {
        return "it is not contiguous; use tensor.contiguous()";
    }
    return NULL;
}

static int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    opscope_tensor *core = opscope__py_core(self);
    const char *reason = refusal(core, flags);
    view->obj = NULL;
    if (reason) {
        PyErr_Format(PyExc_BufferError, "cannot export this tensor's buffer: %s", reason);
        return -1;
    }
    if (opscope__py_tell_read(self) < 0) {
        return -1;
    }
    int dims = opscope_tensor_dims(core);
    size_t item_bytes = opscope_dtype_bytes(opscope_tensor_dtype(core));
    Py_ssize_t *numbers = PyMem_Malloc(2 * OPSCOPE_DIM_LIMIT * sizeof *numbers);
    if (!numbers) {
        PyErr_NoMemory();
        return -1;
    }
    for (int i = 0; i < dims; i++) {
        numbers[i] = opscope_tensor_sizes(core)[i];
        numbers[dims + i] = opscope_tensor_strides(core)[i] * (Py_ssize_t)item_bytes;
    }
    bool wants_shape = flags & PyBUF_ND;
    bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    *view = (Py_buffer){
        .buf = opscope_tensor_data(core),
        .obj = Py_NewRef(self),
        .len = opscope_tensor_count(core) * (Py_ssize_t)item_bytes,
        .itemsize = (Py_ssize_t)item_bytes,
        .readonly = opscope_tensor_is_read_only(core),
        .ndim = dims,
        .format = flags & PyBUF_FORMAT
                      ? (char *)(uintptr_t)opscope__py_dtype_format(opscope_tensor_dtype(core))
                      : NULL,
        .shape = wants_shape ? numbers : NULL,
        .strides = wants_strides ? numbers + dims : NULL,
        .internal = numbers,
    };
    return 0;
}

static void release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    PyMem_Free(view->internal);
}

PyType_Slot opscope__py_buffer_slots[] = {
    {Py_bf_getbuffer, (void *)get_buffer},
    {Py_bf_releasebuffer, (void *)release_buffer},
    {0, NULL},
};

/* ---- import ------------------------------------------------------------------------------------ */

static void free_view(Py_buffer *view)
{
    opscope__buffers.release(view);
    PyMem_Free(view);
}

static void release_view(void *user)
{
    Py_buffer *view = user;
    if (!Py_IsInitialized()) { /* the object was freed with its interpreter */
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure(); /* the last view may be freed on any thread */
    free_view(view);
    PyGILState_Release(state);
}

/* A Tensor over the view's memory, which takes the view, also on failure. */
static PyObject *wrap_view(Py_buffer *view, opscope_dtype dtype, int dims, const int64_t *sizes,
                           const int64_t *strides)
{
    opscope_tensor *core = NULL;
    int status = opscope_tensor_from_memory(view->buf, dims, sizes, strides, dtype, view->readonly,
                                            release_view, view, &core);
    if (status != OPSCOPE_OK) {
        free_view(view);
        return opscope__py_raise(status);
    }
    return opscope__py_tensor_wrap(core);
}

/* Reads sizes, and strides in elements. */
static int read_layout(const Py_buffer *view, int64_t *sizes, int64_t *strides)
{
    if (view->ndim > OPSCOPE_DIM_LIMIT) {
        PyErr_Format(PyExc_ValueError, "an array of %d dimensions; a tensor has at most %d",
                     view->ndim, OPSCOPE_DIM_LIMIT);
        return -1;
    }
    if ((uintptr_t)view->buf % (size_t)view->itemsize != 0) {
        PyErr_SetString(PyExc_ValueError, "the array's memory is not aligned to its elements");
        return -1;
    }
    for (int i = 0; i < view->ndim; i++) {
        if (view->strides[i] % view->itemsize != 0) {
            PyErr_Format(PyExc_ValueError,
                         "stride %zd of the array is no multiple of its "
                         "%zd-byte elements",
                         view->strides[i], view->itemsize);
            return -1;
        }
        sizes[i] = view->shape[i];
        strides[i] = view->strides[i] / view->itemsize;
    }
    return 0;
}

PyObject *opscope__py_tensor_over(PyObject *object)
{
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    if (!view) {
        return PyErr_NoMemory();
    }
    if (opscope__buffers.get(object, view, PyBUF_RECORDS) < 0) {
        PyErr_Clear();
        if (opscope__buffers.get(object, view, PyBUF_RECORDS_RO) < 0) {
            PyMem_Free(view);
            return NULL;
        }
    }
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int64_t strides[OPSCOPE_DIM_LIMIT];
    opscope_dtype dtype;
    if (opscope__py_dtype_from_format(view->format, view->itemsize, &dtype) == 0 &&
        read_layout(view, sizes, strides) == 0) {
        return wrap_view(view, dtype, view->ndim, sizes, strides);
    }
    free_view(view);
    return NULL;
}

static PyObject *from_numpy(PyObject *module, PyObject *object)
{
    (void)module;
    if (!opscope__buffers.check(object) || opscope__py_is_tensor(object)) {
        PyObject *type_name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
        PyErr_Format(PyExc_TypeError,
                     "from_numpy() takes an array (an object with the buffer protocol), not %S",
                     type_name ? type_name : Py_None);
        Py_XDECREF(type_name);
        return NULL;
    }
    return opscope__py_tensor_over(object);
}

/* ---- a tensor of any dtype and sizes over bytes ---------------------------------------------- */

static int read_sizes(PyObject *shape, int64_t *sizes)
{
    Py_ssize_t dims = PyTuple_Size(shape);
    if (dims > OPSCOPE_DIM_LIMIT) {
        PyErr_Format(PyExc_ValueError, "at most %d dimensions, not %zd", OPSCOPE_DIM_LIMIT, dims);
    }
    for (Py_ssize_t i = 0; i < dims && !PyErr_Occurred(); i++) {
        sizes[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        if (sizes[i] < 0 && !PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "sizes cannot be negative: %lld", (long long)sizes[i]);
        }
    }
    return PyErr_Occurred() ? -1 : (int)dims;
}

/* The bytes of a contiguous tensor of those sizes, and its strides; -1 if they overflow. */
static int64_t lay_out(int dims, const int64_t *sizes, opscope_dtype dtype, int64_t *strides)
{
    int64_t bytes = (int64_t)opscope_dtype_bytes(dtype), step = 1;
    bool is_empty = false;
    for (int i = dims - 1; i >= 0; i--) {
        strides[i] = step;
        is_empty |= sizes[i] == 0;
        if (sizes[i] > 0 &&
            (__builtin_mul_overflow(step, sizes[i], &step) || step > INT64_MAX / bytes)) {
            return -1;
        }
    }
    return is_empty ? 0 : step * bytes;
}

static PyObject *over_bytes(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *object, *dtype_object, *shape;
    if (!PyArg_ParseTuple(args, "OOO!:over_bytes", &object, &dtype_object, &PyTuple_Type, &shape)) {
        return NULL;
    }
    if (!opscope__py_is_dtype(dtype_object)) {
        PyErr_SetString(PyExc_TypeError, "dtype must be an opscope.tensor.dtype");
        return NULL;
    }
    opscope_dtype dtype = opscope__py_dtype_value(dtype_object);
    int64_t sizes[OPSCOPE_DIM_LIMIT], strides[OPSCOPE_DIM_LIMIT];
    int dims = read_sizes(shape, sizes);
    Py_buffer *view = dims >= 0 ? PyMem_Malloc(sizeof *view) : NULL;
    if (!view) {
        return dims >= 0 ? PyErr_NoMemory() : NULL;
    }
    if (opscope__buffers.get(object, view, PyBUF_WRITABLE) < 0) {
        PyErr_Clear();
        if (opscope__buffers.get(object, view, 0) < 0) {
            PyMem_Free(view);
            return NULL;
        }
    }
    int64_t bytes = lay_out(dims, sizes, dtype, strides);
    if (bytes < 0 || bytes > view->len) {
        PyErr_Format(PyExc_ValueError,
                     "a buffer of %zd bytes does not hold a %s tensor of sizes %R", view->len,
                     opscope_dtype_name(dtype), shape);
    } else if ((uintptr_t)view->buf % opscope_dtype_bytes(dtype) != 0) {
        PyErr_Format(PyExc_ValueError, "the buffer's memory is not aligned to %s elements",
                     opscope_dtype_name(dtype));
    } else {
        return wrap_view(view, dtype, dims, sizes, strides);
    }
    free_view(view);
    return NULL;
}

PyMethodDef opscope__py_buffer_functions[] = {
    {"over_bytes", over_bytes, METH_VARARGS,
     "over_bytes(buffer, dtype, shape, /)\n--\n\nA tensor of that dtype and those sizes over a "
     "buffer's first bytes, which it keeps alive."},
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(array, /)\n--\n\nA tensor that shares the array's memory, which lives as long as "
     "the tensor or a view of it.\n\nAccepts any object with the buffer protocol. A read-only array "
     "gives a read-only tensor.\nTypeError for elements that have no dtype here, ValueError for "
     "strides that are not a whole\nnumber of elements."},
    {0},
};
