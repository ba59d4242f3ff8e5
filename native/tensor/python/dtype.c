/* The type opscope.tensor.dtype and its eight objects.
 *
 * Each dtype is one object, compared by identity. The core converts values.
 */
#include "tensor/python/python.h"

#include <string.h>

typedef struct {
    PyObject_HEAD
    opscope_dtype value;
} dtype_object;

static PyTypeObject *dtype_type;
static PyObject *dtypes[OPSCOPE_DTYPE_COUNT];

static const char *const FORMATS[OPSCOPE_DTYPE_COUNT] = {
    [OPSCOPE_FLOAT32] = "f",   [OPSCOPE_FLOAT64] = "d", [OPSCOPE_INT32] = "i",
    [OPSCOPE_INT64] = "q",     [OPSCOPE_UINT8] = "B",   [OPSCOPE_BOOL] = "?",
    [OPSCOPE_BFLOAT16] = NULL, [OPSCOPE_FLOAT16] = "e",
};

static const char *name_of(PyObject *self)
{
    return opscope_dtype_name(((dtype_object *)self)->value);
}

static PyObject *dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("opscope.tensor.%s", name_of(self));
}

static PyObject *dtype_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(name_of(self));
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(name_of(self));
}

static PyObject *get_itemsize(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(opscope_dtype_bytes(((dtype_object *)self)->value));
}

static PyObject *get_is_floating_point(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(opscope_dtype_is_floating(((dtype_object *)self)->value));
}

static void dtype_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyGetSetDef dtype_attributes[] = {
    {"name", get_name, NULL, "The dtype's name, as NumPy writes it.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of one element.", NULL},
    {"is_floating_point", get_is_floating_point, NULL, "Whether it holds floating point numbers.",
     NULL},
    {0},
};

static PyMethodDef dtype_methods[] = {
    /* Pickles as a string: the name of the object in the type's module. */
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {0},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_doc, "The type of a tensor's elements: float32, int64, ... Compared by identity."},
    {Py_tp_repr, (void *)dtype_repr},
    {Py_tp_dealloc, (void *)dtype_dealloc},
    {Py_tp_getset, dtype_attributes},
    {Py_tp_methods, dtype_methods},
    {0, NULL},
};

static PyType_Spec dtype_spec = {
    .name = "opscope.tensor.dtype",
    .basicsize = sizeof(dtype_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = dtype_slots,
};

PyObject *opscope__py_dtype(opscope_dtype dtype)
{
    return Py_NewRef(dtypes[dtype]);
}

bool opscope__py_is_dtype(PyObject *object)
{
    return Py_TYPE(object) == dtype_type;
}

opscope_dtype opscope__py_dtype_value(PyObject *object)
{
    return ((dtype_object *)object)->value;
}

const char *opscope__py_dtype_format(opscope_dtype dtype)
{
    return FORMATS[dtype];
}

int opscope__py_dtype_from_format(const char *format, Py_ssize_t item_bytes, opscope_dtype *out)
{
    const char *code = format ? format : "B"; /* the buffer protocol's default */
    const uint16_t probe = 1;
    bool little = *(const uint8_t *)&probe == 1;
    if (*code == '@' || *code == '=' || *code == (little ? '<' : '>')) {
        code++;
    }
    if (*code != '\0' && code[1] == '\0') {
        if (strchr("ilqn", *code)) { /* long is 4 or 8 bytes */
            if (item_bytes == 4 || item_bytes == 8) {
                *out = item_bytes == 4 ? OPSCOPE_INT32 : OPSCOPE_INT64;
                return 0;
            }
        }
        for (int i = 0; i < OPSCOPE_DTYPE_COUNT; i++) {
            if (FORMATS[i] && *FORMATS[i] == *code &&
                opscope_dtype_bytes((opscope_dtype)i) == (size_t)item_bytes) {
                *out = (opscope_dtype)i;
                return 0;
            }
        }
    }
    PyErr_Format(PyExc_TypeError,
                 "elements of buffer format '%s' (%zd bytes) have no dtype here; there are "
                 "float16, float32, float64, int32, int64, uint8 and bool, in native byte order",
                 format ? format : "B", item_bytes);
    return -1;
}

int opscope__py_add_dtypes(PyObject *module)
{
    dtype_type = (PyTypeObject *)PyType_FromSpec(&dtype_spec);
    if (!dtype_type || PyModule_AddObjectRef(module, "dtype", (PyObject *)dtype_type) < 0) {
        return -1;
    }
    for (int i = 0; i < OPSCOPE_DTYPE_COUNT; i++) {
        dtype_object *object = PyObject_New(dtype_object, dtype_type);
        if (!object) {
            return -1;
        }
        object->value = (opscope_dtype)i;
        dtypes[i] = (PyObject *)object;
        if (PyModule_AddObjectRef(module, opscope_dtype_name((opscope_dtype)i), dtypes[i]) < 0) {
            return -1;
        }
    }
    return 0;
}
