/* Converts one Python object to an operator's argument, according to the parameter's type.
 *
 * The operator checks sizes and dtypes.
 */
#include "tensor/python/bind.h"

#include "tensor/core/registry.h"

/* The Python number of a NumPy scalar: a new reference; NULL without an exception for any other
 * object. Uses NumPy only if it is already imported. */
static PyObject *number_of_scalar(PyObject *object)
{
    static PyObject *generic; /* the base class of NumPy's scalars; never freed */
    if (!generic) {
        PyObject *name = PyUnicode_FromString("numpy");
        PyObject *numpy = name ? PyImport_GetModule(name) : NULL;
        generic = numpy ? PyObject_GetAttrString(numpy, "generic") : NULL;
        Py_XDECREF(numpy);
        Py_XDECREF(name);
        PyErr_Clear();
    }
    if (!generic || PyObject_IsInstance(object, generic) != 1) {
        return NULL;
    }
    PyObject *number = PyObject_CallMethod(object, "item", NULL);
    PyErr_Clear();
    return number;
}

static int operand_of_scalar(PyObject *object, opscope_argument *out)
{
    PyObject *number = number_of_scalar(object);
    int found = false;
    /* The item of a long double is a long double, which has no dtype here. */
    if (number && (PyFloat_Check(number) || PyLong_Check(number))) {
        found = opscope__py_operand(number, out);
    }
    Py_XDECREF(number);
    return found;
}

int opscope__py_operand(PyObject *object, opscope_argument *out)
{
    if (opscope__py_is_tensor(object)) {
        out->kind = OPSCOPE_ARGUMENT_TENSOR;
        out->as.tensor = opscope__py_core(object);
        return true;
    }
    if (PyFloat_Check(object)) {
        out->kind = OPSCOPE_ARGUMENT_FLOAT;
        out->as.real = PyFloat_AsDouble(object);
        return true;
    }
    if (PyBool_Check(object)) {
        out->kind = OPSCOPE_ARGUMENT_BOOL;
        out->as.integer = object == Py_True;
        return true;
    }
    if (PyLong_Check(object)) {
        long long value = PyLong_AsLongLong(object);
        if (value == -1 && PyErr_Occurred()) {
            return -1;
        }
        out->kind = OPSCOPE_ARGUMENT_INT;
        out->as.integer = value;
        return true;
    }
    return operand_of_scalar(object, out);
}

static const char *const TYPE_WORDS[] = {
    [OPSCOPE__TYPE_TENSOR] = "a Tensor or a number",
    [OPSCOPE__TYPE_TENSORS] = "a sequence of Tensors",
    [OPSCOPE__TYPE_INT] = "an int",
    [OPSCOPE__TYPE_INTS] = "a sequence of ints",
    [OPSCOPE__TYPE_INT_OR_INTS] = "an int or a sequence of ints",
    [OPSCOPE__TYPE_FLOAT] = "a float",
    [OPSCOPE__TYPE_BOOL] = "a bool",
    [OPSCOPE__TYPE_SCALAR] = "a number",
    [OPSCOPE__TYPE_DTYPE] = "an opscope.tensor.dtype",
    [OPSCOPE__TYPE_TEXT] = "a str",
};

static int fail_type(const opscope_operator *op, const struct opscope__parameter *parameter,
                     PyObject *object)
{
    PyObject *type_name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    bool is_device = parameter->type == OPSCOPE__TYPE_DTYPE && PyUnicode_Check(object);
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s%s, not %S%s",
                 opscope_operator_name(op), parameter->name, TYPE_WORDS[parameter->type],
                 parameter->optional ? " or None" : "", type_name ? type_name : Py_None,
                 is_device ? "; the only device is cpu" : "");
    Py_XDECREF(type_name);
    return -1;
}

static int64_t to_integer(PyObject *object)
{
    if (PyLong_Check(object)) {
        return PyLong_AsLongLong(object);
    }
    PyObject *index = PyNumber_Index(object);
    if (!index) {
        return -1;
    }
    int64_t value = PyLong_AsLongLong(index);
    Py_DECREF(index);
    return value;
}

/* Memory for `count` items: in the binding's own array if they fit, else a block. */
static void *make_room(struct opscope__py_binding *binding, void *own, size_t *used, size_t count,
                       size_t item_bytes)
{
    if (count <= OPSCOPE__PY_INLINE_COUNT - *used) {
        void *room = (char *)own + *used * item_bytes;
        *used += count;
        return room;
    }
    void *block = PyMem_Malloc(count * item_bytes);
    if (!block) {
        PyErr_NoMemory();
        return NULL;
    }
    binding->blocks[binding->block_count++] = block;
    return block;
}

int opscope__py_bind_integers(struct opscope__py_binding *binding, opscope_argument *out,
                              PyObject *const *items, size_t count)
{
    int64_t *integers =
        make_room(binding, binding->integers, &binding->integer_count, count, sizeof *integers);
    if (!integers) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        integers[i] = to_integer(items[i]);
        if (integers[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    *out = (opscope_argument){
        .kind = OPSCOPE_ARGUMENT_INTS, .count = (uint32_t)count, .as.integers = integers};
    return 0;
}

/* The items of a list or tuple as a tuple that the binding keeps; NULL without an exception for
 * others. */
static PyObject *keep_sequence(struct opscope__py_binding *binding, PyObject *object)
{
    if (!PyTuple_Check(object) && !PyList_Check(object)) {
        return NULL;
    }
    PyObject *tuple = PySequence_Tuple(object);
    if (tuple) {
        binding->kept[binding->kept_count++] = tuple;
    }
    return tuple;
}

static int bind_sequence_of_integers(struct opscope__py_binding *binding,
                                     const struct opscope__parameter *parameter, PyObject *object,
                                     opscope_argument *out)
{
    if (PyIndex_Check(object) && !PyTuple_Check(object)) {
        PyObject *repeated[8] = {object, object, object, object, object, object, object, object};
        return opscope__py_bind_integers(binding, out, repeated,
                                         parameter->length ? parameter->length : 1);
    }
    PyObject *tuple = keep_sequence(binding, object);
    if (!tuple) {
        return PyErr_Occurred() ? -1 : 1;
    }
    size_t count = (size_t)PyTuple_Size(tuple);
    int64_t *integers =
        make_room(binding, binding->integers, &binding->integer_count, count, sizeof *integers);
    for (size_t i = 0; integers && i < count; i++) {
        PyObject *item = PyTuple_GetItem(tuple, (Py_ssize_t)i);
        if (!PyIndex_Check(item)) {
            return 1;
        }
        integers[i] = to_integer(item);
        if (integers[i] == -1 && PyErr_Occurred()) {
            return -1;
        }
    }
    *out = (opscope_argument){
        .kind = OPSCOPE_ARGUMENT_INTS, .count = (uint32_t)count, .as.integers = integers};
    return integers ? 0 : -1;
}

static int bind_tensors(struct opscope__py_binding *binding, PyObject *object,
                        opscope_argument *out)
{
    PyObject *tuple = keep_sequence(binding, object);
    if (!tuple) {
        return PyErr_Occurred() ? -1 : 1;
    }
    size_t count = (size_t)PyTuple_Size(tuple);
    opscope_tensor **tensors =
        make_room(binding, binding->tensors, &binding->tensor_count, count, sizeof *tensors);
    if (!tensors) {
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(tuple, (Py_ssize_t)i);
        if (!opscope__py_is_tensor(item)) {
            return 1;
        }
        tensors[i] = opscope__py_core(item);
    }
    *out = (opscope_argument){
        .kind = OPSCOPE_ARGUMENT_TENSORS, .count = (uint32_t)count, .as.tensors = tensors};
    return 0;
}

static int bind_text(PyObject *object, opscope_argument *out)
{
    if (!PyUnicode_Check(object)) {
        return 1;
    }
    out->kind = OPSCOPE_ARGUMENT_TEXT;
    out->as.text = PyUnicode_AsUTF8AndSize(object, NULL);
    return out->as.text ? 0 : -1;
}

static int bind_integer(PyObject *object, opscope_argument *out)
{
    if (!PyIndex_Check(object)) {
        return 1;
    }
    out->kind = OPSCOPE_ARGUMENT_INT;
    out->as.integer = to_integer(object);
    return out->as.integer == -1 && PyErr_Occurred() ? -1 : 0;
}

static int bind_float(PyObject *object, opscope_argument *out)
{
    if (!PyFloat_Check(object) && !PyIndex_Check(object)) {
        int found = operand_of_scalar(object, out);
        return found < 0 ? -1 : found == false || out->kind != OPSCOPE_ARGUMENT_FLOAT;
    }
    out->kind = OPSCOPE_ARGUMENT_FLOAT;
    out->as.real = PyFloat_AsDouble(object);
    return out->as.real == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* numpy.bool, as an INT. */
static bool operand_is_bool(PyObject *object, opscope_argument *out)
{
    bool is_bool = operand_of_scalar(object, out) == true && out->kind == OPSCOPE_ARGUMENT_BOOL;
    out->kind = OPSCOPE_ARGUMENT_INT;
    return is_bool;
}

/* A number; a tensor of one element counts as its element. */
static int bind_scalar(PyObject *object, opscope_argument *out)
{
    int found;
    if (opscope__py_is_tensor(object)) {
        PyObject *element = PyObject_CallMethod(object, "item", NULL);
        if (!element) {
            return -1;
        }
        found = opscope__py_operand(element, out);
        Py_DECREF(element);
    } else {
        found = opscope__py_operand(object, out);
        if (found == false && PyIndex_Check(object)) {
            return bind_integer(object, out);
        }
    }
    return found == true ? 0 : found == false ? 1 : -1;
}

/* 0, or -1 with an exception, or 1 if `object` is of the wrong kind. */
static int bind_kind(struct opscope__py_binding *binding,
                     const struct opscope__parameter *parameter, PyObject *object,
                     opscope_argument *out)
{
    if (object == Py_None) {
        out->kind = OPSCOPE_ARGUMENT_NONE;
        return parameter->optional ? 0 : 1;
    }
    switch (parameter->type) {
    case OPSCOPE__TYPE_TENSOR: {
        int found = opscope__py_operand(object, out);
        return found == true ? 0 : found == false ? 1 : -1;
    }
    case OPSCOPE__TYPE_TENSORS:
        return bind_tensors(binding, object, out);
    case OPSCOPE__TYPE_INT:
        return bind_integer(object, out);
    case OPSCOPE__TYPE_INTS:
        return bind_sequence_of_integers(binding, parameter, object, out);
    case OPSCOPE__TYPE_INT_OR_INTS:
        return PyIndex_Check(object) ? bind_integer(object, out)
                                     : bind_sequence_of_integers(binding, parameter, object, out);
    case OPSCOPE__TYPE_FLOAT:
        return bind_float(object, out);
    case OPSCOPE__TYPE_BOOL:
        out->kind = OPSCOPE_ARGUMENT_INT;
        out->as.integer = object == Py_True;
        return PyBool_Check(object) || operand_is_bool(object, out) ? 0 : 1;
    case OPSCOPE__TYPE_SCALAR:
        return bind_scalar(object, out);
    case OPSCOPE__TYPE_DTYPE:
        if (!opscope__py_is_dtype(object)) {
            return 1;
        }
        out->kind = OPSCOPE_ARGUMENT_INT;
        out->as.integer = opscope__py_dtype_value(object);
        return 0;
    case OPSCOPE__TYPE_TEXT:
        return bind_text(object, out);
    }
    return 1;
}

int opscope__py_bind_value(const opscope_operator *op, const struct opscope__parameter *parameter,
                           PyObject *object, struct opscope__py_binding *binding,
                           opscope_argument *out)
{
    int result = bind_kind(binding, parameter, object, out);
    return result == 1 ? fail_type(op, parameter, object) : result;
}
