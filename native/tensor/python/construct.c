/* tensor(data): creates a tensor with a copy of numbers, nested sequences or arrays.
 *
 * buffer.c and dlpack.c share memory instead. Copies element by element, without an operator and
 * thus without a range; if the dtype differs from the array's, the core's `to` converts it.
 */
#include <string.h>

#include "opscope/autograd.h"
#include "tensor/python/buffer.h"

/* ---- from arrays and tensors ----------------------------------------------------------------- */

/* Copies from `source` at `from` into contiguous memory; returns the end of what it wrote. */
static char *copy_strided(const opscope_tensor *source, int dim, const char *from, char *to)
{
    size_t item_bytes = opscope_dtype_bytes(opscope_tensor_dtype(source));
    int dims = opscope_tensor_dims(source);
    if (dim == dims) {
        memcpy(to, from, item_bytes);
        return to + item_bytes;
    }
    int64_t size = opscope_tensor_sizes(source)[dim];
    int64_t step = opscope_tensor_strides(source)[dim] * (int64_t)item_bytes;
    if (dim == dims - 1 && step == (int64_t)item_bytes) {
        memcpy(to, from, (size_t)size * item_bytes);
        return to + (size_t)size * item_bytes;
    }
    for (int64_t i = 0; i < size; i++) {
        to = copy_strided(source, dim + 1, from + i * step, to);
    }
    return to;
}

static PyObject *copy_of(const opscope_tensor *source)
{
    opscope_tensor *copy;
    int status = opscope_tensor_empty(opscope_tensor_dims(source), opscope_tensor_sizes(source),
                                      opscope_tensor_dtype(source), NULL, &copy);
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    if (opscope_tensor_count(source) > 0) {
        copy_strided(source, 0, opscope_tensor_data(source), opscope_tensor_data(copy));
    }
    return opscope__py_tensor_wrap(copy);
}

/* Converts `tensor` to that dtype; takes its reference and returns a new one. */
static PyObject *converted(PyObject *tensor, PyObject *dtype)
{
    if (!tensor || dtype == Py_None ||
        opscope_tensor_dtype(opscope__py_core(tensor)) == opscope__py_dtype_value(dtype)) {
        return tensor;
    }
    PyObject *result = PyObject_CallMethod(tensor, "to", "O", dtype);
    Py_DECREF(tensor);
    return result;
}

/* ---- from numbers and sequences -------------------------------------------------------------- */

static bool is_sequence(PyObject *data)
{
    if (opscope__py_is_tensor(data)) {
        return opscope_tensor_dims(opscope__py_core(data)) > 0;
    }
    return PySequence_Check(data) && !PyUnicode_Check(data) && !PyBytes_Check(data);
}

static int measure(PyObject *data, int *dims, int64_t *sizes)
{
    PyObject *part = Py_NewRef(data);
    *dims = 0;
    while (is_sequence(part)) {
        Py_ssize_t length = PySequence_Size(part);
        if (length < 0) { /* a NumPy scalar claims to be a sequence */
            PyErr_Clear();
            break;
        }
        if (*dims == OPSCOPE_DIM_LIMIT) {
            PyErr_Format(PyExc_ValueError, "tensor(): more than %d levels of lists",
                         OPSCOPE_DIM_LIMIT);
            Py_DECREF(part);
            return -1;
        }
        sizes[(*dims)++] = length;
        if (length == 0) {
            break;
        }
        PyObject *first = PySequence_GetItem(part, 0);
        Py_DECREF(part);
        if (!first) {
            return -1;
        }
        part = first;
    }
    Py_DECREF(part);
    return 0;
}

static int fail_shape(int dim, int64_t expected, Py_ssize_t found)
{
    PyErr_Format(PyExc_ValueError,
                 "tensor(): expected sequences of length %lld at dim %d, found one of %zd",
                 (long long)expected, dim, found);
    return -1;
}

/* Calls `visit` for each number in `data`, in order. */
static int each_number(PyObject *data, int dim, int dims, const int64_t *sizes,
                       int (*visit)(PyObject *number, void *context), void *context)
{
    if (dim == dims) {
        if (is_sequence(data) && PySequence_Size(data) >= 0) {
            return fail_shape(dim, 1, PySequence_Size(data));
        }
        PyErr_Clear();
        return visit(data, context);
    }
    Py_ssize_t length = is_sequence(data) ? PySequence_Size(data) : 1;
    if (length != sizes[dim] || !is_sequence(data)) {
        return fail_shape(dim, sizes[dim], length);
    }
    for (Py_ssize_t i = 0; i < length; i++) {
        PyObject *part = PySequence_GetItem(data, i);
        int result = part ? each_number(part, dim + 1, dims, sizes, visit, context) : -1;
        Py_XDECREF(part);
        if (result < 0) {
            return -1;
        }
    }
    return 0;
}

/* Widens the dtype at `context` so that it can hold the number: bool, int64, float32. */
static int widen(PyObject *number, void *context)
{
    opscope_dtype *dtype = context;
    opscope_dtype own;
    if (opscope__py_is_tensor(number)) {
        own = opscope_tensor_dtype(opscope__py_core(number));
    } else if (PyBool_Check(number)) {
        own = OPSCOPE_BOOL;
    } else if (PyIndex_Check(number)) {
        own = OPSCOPE_INT64;
    } else if (PyFloat_Check(number) || PyObject_HasAttrString(number, "__float__")) {
        own = OPSCOPE_FLOAT32;
    } else {
        PyObject *type_name = PyObject_GetAttrString((PyObject *)Py_TYPE(number), "__name__");
        PyErr_Format(PyExc_TypeError, "tensor(): elements must be numbers, not %S",
                     type_name ? type_name : Py_None);
        Py_XDECREF(type_name);
        return -1;
    }
    *dtype = *dtype == OPSCOPE_DTYPE_COUNT ? own : opscope_dtype_promote(*dtype, own);
    return 0;
}

struct writer {
    char *next;
    opscope_dtype dtype;
};

static int write_number(PyObject *number, void *context)
{
    struct writer *writer = context;
    if (opscope__py_set_element(writer->next, writer->dtype, number) < 0) {
        return -1;
    }
    writer->next += opscope_dtype_bytes(writer->dtype);
    return 0;
}

static PyObject *from_numbers(PyObject *data, PyObject *dtype_object)
{
    int dims;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    opscope_dtype dtype = OPSCOPE_DTYPE_COUNT;
    if (measure(data, &dims, sizes) < 0 || each_number(data, 0, dims, sizes, widen, &dtype) < 0) {
        return NULL;
    }
    if (dtype == OPSCOPE_DTYPE_COUNT) {
        dtype = OPSCOPE_FLOAT32; /* no elements */
    }
    PyObject *then = Py_None;
    if (dtype_object != Py_None) {
        dtype = opscope__py_dtype_value(dtype_object);
        if (dtype == OPSCOPE_FLOAT16 || dtype == OPSCOPE_BFLOAT16) {
            dtype = OPSCOPE_FLOAT32;
            then = dtype_object;
        }
    }
    opscope_tensor *core;
    int status = opscope_tensor_empty(dims, sizes, dtype, NULL, &core);
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    struct writer writer = {opscope_tensor_data(core), dtype};
    if (each_number(data, 0, dims, sizes, write_number, &writer) < 0) {
        opscope_tensor_release(core);
        return NULL;
    }
    return converted(opscope__py_tensor_wrap(core), then);
}

/* ---- tensor() -------------------------------------------------------------------------------------- */

static PyObject *from_buffer(PyObject *data, PyObject *dtype)
{
    PyObject *over = opscope__py_tensor_over(data);
    PyObject *copy = over ? copy_of(opscope__py_core(over)) : NULL;
    Py_XDECREF(over);
    return converted(copy, dtype);
}

static PyObject *copied(PyObject *data, PyObject *dtype)
{
    if (opscope__py_is_tensor(data)) {
        if (opscope__py_tell_read(data) < 0) {
            return NULL;
        }
        return converted(copy_of(opscope__py_core(data)), dtype);
    }
    return opscope__buffers.check(data) ? from_buffer(data, dtype) : from_numbers(data, dtype);
}

PyObject *opscope__py_tensor_copied(PyObject *data)
{
    return copied(data, Py_None);
}

int opscope__py_check_device(const char *name, PyObject *device)
{
    if (device == Py_None) {
        return 0;
    }
    PyObject *text = PyObject_Str(device); /* of a str, or of a device */
    bool is_cpu = text && (PyUnicode_CompareWithASCIIString(text, "cpu") == 0 ||
                           PyUnicode_CompareWithASCIIString(text, "cpu:0") == 0);
    Py_XDECREF(text);
    if (is_cpu || PyErr_Occurred()) {
        return is_cpu ? 0 : -1;
    }
    PyErr_Format(PyExc_RuntimeError, "%s(): device %R: tensors here are on the cpu", name, device);
    return -1;
}

static PyObject *tensor(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"data", "dtype", "requires_grad", "device", NULL};
    PyObject *data;
    PyObject *dtype = Py_None, *device = Py_None;
    int requires_grad = false;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$OpO:tensor", names, &data, &dtype,
                                     &requires_grad, &device) ||
        opscope__py_check_device("tensor", device) < 0) {
        return NULL;
    }
    if (dtype != Py_None && !opscope__py_is_dtype(dtype)) {
        PyErr_SetString(PyExc_TypeError, "tensor(): dtype must be an opscope.tensor.dtype");
        return NULL;
    }
    PyObject *result = copied(data, dtype);
    if (result && requires_grad) {
        int status = opscope_tensor_set_requires_grad(opscope__py_core(result), true);
        if (status != OPSCOPE_OK) {
            Py_DECREF(result);
            return opscope__py_raise(status);
        }
    }
    return result;
}

PyMethodDef opscope__py_construct_functions[] = {
    {"tensor", (PyCFunction)(void (*)(void))tensor, METH_VARARGS | METH_KEYWORDS,
     "tensor(data, *, dtype=None, requires_grad=False, device=None)\n--\n\nA new tensor with a copy of `data`: "
     "a number, nested sequences of numbers, an array or a tensor.\n\nWithout dtype: an array's "
     "own; for Python numbers bool, int64 or float32. ValueError for\nsequences of unequal "
     "length, TypeError for what is no number, OverflowError for a number\nthat does not fit."},
    {0},
};
