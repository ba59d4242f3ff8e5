/* Elements of a tensor as Python numbers: item, tolist, bool, int, float, and back.
 *
 * Only this file converts elements of each dtype to Python objects and back.
 * opscope/tensor/format.py formats them.
 */
#include "tensor/python/python.h"

#include <math.h>
#include <string.h>

static PyObject *read_listener; /* owned; NULL: no listener */

int opscope__py_tell_read(PyObject *tensor)
{
    if (read_listener == NULL) {
        return 0;
    }
    PyObject *listener = Py_NewRef(read_listener); /* which it may replace */
    PyObject *result = PyObject_CallFunctionObjArgs(listener, tensor, NULL);
    Py_DECREF(listener);
    Py_XDECREF(result);
    return result != NULL ? 0 : -1;
}

bool opscope__py_has_read_listener(void)
{
    return read_listener != NULL;
}

static PyObject *set_read_listener(PyObject *module, PyObject *listener)
{
    (void)module;
    PyObject *before = read_listener;
    read_listener = listener != Py_None ? Py_NewRef(listener) : NULL;
    return before != NULL ? before : Py_NewRef(Py_None);
}

/* The float32 with `bits` as its upper half. */
static float from_bfloat16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static float from_float16(uint16_t bits)
{
    float sign = bits >> 15 ? -1.0F : 1.0F;
    int exponent = bits >> 10 & 31;
    float fraction = (float)(bits & 1023);
    if (exponent == 31) {
        return fraction != 0.0F ? NAN : sign * INFINITY;
    }
    return sign * (exponent ? ldexpf(1024.0F + fraction, exponent - 25) : ldexpf(fraction, -24));
}

PyObject *opscope__py_element(const void *data, opscope_dtype dtype)
{
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
    } value;
    memcpy(&value, data, opscope_dtype_bytes(dtype));
    switch (dtype) {
    case OPSCOPE_FLOAT32:
        return PyFloat_FromDouble((double)value.f32);
    case OPSCOPE_FLOAT64:
        return PyFloat_FromDouble(value.f64);
    case OPSCOPE_INT32:
        return PyLong_FromLong(value.i32);
    case OPSCOPE_INT64:
        return PyLong_FromLongLong(value.i64);
    case OPSCOPE_UINT8:
        return PyLong_FromLong(value.u8);
    case OPSCOPE_BOOL:
        return PyBool_FromLong(value.u8 != 0);
    case OPSCOPE_BFLOAT16:
        return PyFloat_FromDouble((double)from_bfloat16(value.u16));
    case OPSCOPE_FLOAT16:
        return PyFloat_FromDouble((double)from_float16(value.u16));
    default:
        PyErr_SetString(PyExc_SystemError, "unknown dtype");
        return NULL;
    }
}

static int set_integer(void *data, opscope_dtype dtype, PyObject *number)
{
    PyObject *whole = PyNumber_Long(number); /* 1.9 becomes 1, as in PyTorch */
    if (!whole) {
        return -1;
    }
    long long value = PyLong_AsLongLong(whole);
    Py_DECREF(whole);
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    long long least = dtype == OPSCOPE_INT32 ? INT32_MIN : 0;
    long long most = dtype == OPSCOPE_INT32 ? INT32_MAX : UINT8_MAX;
    if (dtype != OPSCOPE_INT64 && (value < least || value > most)) {
        PyErr_Format(PyExc_OverflowError, "%lld does not fit into %s", value,
                     opscope_dtype_name(dtype));
        return -1;
    }
    int32_t i32 = (int32_t)value;
    uint8_t u8 = (uint8_t)value;
    int64_t i64 = value;
    const void *source = dtype == OPSCOPE_INT64   ? (const void *)&i64
                         : dtype == OPSCOPE_INT32 ? (const void *)&i32
                                                  : (const void *)&u8;
    memcpy(data, source, opscope_dtype_bytes(dtype));
    return 0;
}

int opscope__py_set_element(void *data, opscope_dtype dtype, PyObject *number)
{
    if (dtype == OPSCOPE_BOOL) {
        int truth = PyObject_IsTrue(number);
        *(uint8_t *)data = (uint8_t)(truth > 0);
        return truth < 0 ? -1 : 0;
    }
    if (!opscope_dtype_is_floating(dtype)) {
        return set_integer(data, dtype, number);
    }
    double value = PyFloat_AsDouble(number);
    if (value == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    if (dtype == OPSCOPE_FLOAT64) {
        memcpy(data, &value, sizeof value);
    } else if (dtype == OPSCOPE_FLOAT32) {
        float narrow = (float)value;
        memcpy(data, &narrow, sizeof narrow);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "cannot make %s elements from numbers; convert a float32 "
                     "tensor",
                     opscope_dtype_name(dtype));
        return -1;
    }
    return 0;
}

static PyObject *item(PyObject *self, PyObject *unused)
{
    (void)unused;
    opscope_tensor *core = opscope__py_core(self);
    if (opscope_tensor_count(core) != 1) {
        PyErr_Format(PyExc_ValueError,
                     "item(): a tensor of one element is one Python number; this one has %lld",
                     (long long)opscope_tensor_count(core));
        return NULL;
    }
    if (opscope__py_tell_read(self) < 0) {
        return NULL;
    }
    return opscope__py_element(opscope_tensor_data(core), opscope_tensor_dtype(core));
}

/* If `size` is more than 2 * edge, only the first and last `edge` of a dimension. */
static PyObject *list_from(const opscope_tensor *core, int dim, const char *data, int64_t edge)
{
    opscope_dtype dtype = opscope_tensor_dtype(core);
    if (dim == opscope_tensor_dims(core)) {
        return opscope__py_element(data, dtype);
    }
    int64_t size = opscope_tensor_sizes(core)[dim];
    int64_t step = opscope_tensor_strides(core)[dim] * (int64_t)opscope_dtype_bytes(dtype);
    int64_t left_out = size > 2 * edge ? size - 2 * edge : 0;
    PyObject *list = PyList_New(size - left_out);
    for (int64_t i = 0; list && i < size - left_out; i++) {
        int64_t at = left_out && i >= edge ? i + left_out : i;
        PyObject *part = list_from(core, dim + 1, data + at * step, edge);
        if (!part) {
            Py_CLEAR(list);
        } else {
            PyList_SetItem(list, i, part);
        }
    }
    return list;
}

static PyObject *tolist(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (opscope__py_tell_read(self) < 0) {
        return NULL;
    }
    opscope_tensor *core = opscope__py_core(self);
    return list_from(core, 0, opscope_tensor_data(core), INT64_MAX / 4);
}

static PyObject *corners(PyObject *self, PyObject *edge)
{
    Py_ssize_t count = PyLong_AsSsize_t(edge);
    if (count == -1 && PyErr_Occurred()) {
        return NULL;
    }
    opscope_tensor *core = opscope__py_core(self);
    return list_from(core, 0, opscope_tensor_data(core), count);
}

int opscope__py_truth(PyObject *self)
{
    int64_t count = opscope_tensor_count(opscope__py_core(self));
    if (count != 1) {
        PyErr_Format(PyExc_ValueError,
                     "bool(): the truth of a tensor of %lld elements is not "
                     "defined; use any() or all()",
                     (long long)count);
        return -1;
    }
    PyObject *element = item(self, NULL);
    int truth = element ? PyObject_IsTrue(element) : -1;
    Py_XDECREF(element);
    return truth;
}

PyObject *opscope__py_as_int(PyObject *self)
{
    PyObject *element = item(self, NULL);
    PyObject *result = element ? PyNumber_Long(element) : NULL;
    Py_XDECREF(element);
    return result;
}

PyObject *opscope__py_as_float(PyObject *self)
{
    PyObject *element = item(self, NULL);
    PyObject *result = element ? PyNumber_Float(element) : NULL;
    Py_XDECREF(element);
    return result;
}

PyObject *opscope__py_as_index(PyObject *self)
{
    opscope_tensor *core = opscope__py_core(self);
    if (opscope_tensor_count(core) != 1 || opscope_dtype_is_floating(opscope_tensor_dtype(core))) {
        PyErr_SetString(PyExc_TypeError, "only an integer tensor of one element is an index");
        return NULL;
    }
    return opscope__py_as_int(self);
}

PyMethodDef opscope__py_value_methods[] = {
    {"item", item, METH_NOARGS, "item($self)\n--\n\nThe only element, as a Python number."},
    {"tolist", tolist, METH_NOARGS,
     "tolist($self)\n--\n\nThe elements as nested lists of Python numbers."},
    {"_corners", corners, METH_O, NULL}, /* tolist with only `edge` items at each end: for repr */
    {0},
};

PyMethodDef opscope__py_value_functions[] = {
    {"set_read_listener", set_read_listener, METH_O,
     "Calls listener(tensor), on any thread, before elements become Python values; None: nothing. "
     "Returns the previous listener."},
    {0},
};
