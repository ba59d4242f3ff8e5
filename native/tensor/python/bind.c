/* Binding Python arguments to an operator's parameters, as Python binds a call.
 *
 * Driven by the parsed schema alone. Checks kinds and counts; whether sizes and dtypes fit is the
 * operator's to say.
 */
#include "tensor/python/python.h"

#include <string.h>

#include "tensor/registry.h"

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
    return false;
}

static const char *const TYPE_WORDS[] = {
    [OPSCOPE__TYPE_TENSOR] = "a Tensor or a number",
    [OPSCOPE__TYPE_TENSORS] = "a sequence of Tensors",
    [OPSCOPE__TYPE_INT] = "an int",
    [OPSCOPE__TYPE_INTS] = "a sequence of ints",
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
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s%s, not %S",
                 opscope_operator_name(op), parameter->name, TYPE_WORDS[parameter->type],
                 parameter->optional ? " or None" : "", type_name ? type_name : Py_None);
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

/* Room for `count` items in the binding's own array, else in a block of memory. */
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

static int bind_integers(struct opscope__py_binding *binding, opscope_argument *out,
                         PyObject *const *items, size_t count)
{
    int64_t *integers = make_room(binding, binding->integers, &binding->integer_count, count,
                                  sizeof *integers);
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

/* The items of a list or tuple as a tuple that the binding keeps; NULL, no exception, for others. */
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
        return bind_integers(binding, out, repeated, parameter->length ? parameter->length : 1);
    }
    PyObject *tuple = keep_sequence(binding, object);
    if (!tuple) {
        return PyErr_Occurred() ? -1 : 1;
    }
    size_t count = (size_t)PyTuple_Size(tuple);
    int64_t *integers = make_room(binding, binding->integers, &binding->integer_count, count,
                                  sizeof *integers);
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
        return 1;
    }
    out->kind = OPSCOPE_ARGUMENT_FLOAT;
    out->as.real = PyFloat_AsDouble(object);
    return out->as.real == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* A number; a tensor of one element stands for its element. */
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

/* 0, -1 with an exception, or 1 where `object` is of the wrong kind. */
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
    case OPSCOPE__TYPE_FLOAT:
        return bind_float(object, out);
    case OPSCOPE__TYPE_BOOL:
        out->kind = OPSCOPE_ARGUMENT_INT;
        out->as.integer = object == Py_True;
        return PyBool_Check(object) ? 0 : 1;
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

static int bind_one(const opscope_operator *op, const struct opscope__parameter *parameter,
                    PyObject *object, struct opscope__py_binding *binding, opscope_argument *out)
{
    int result = bind_kind(binding, parameter, object, out);
    return result == 1 ? fail_type(op, parameter, object) : result;
}

/* Whether the positional arguments from `items` on are x.view(2, 3)'s kind of a list of ints. */
static bool is_spread(const struct opscope__schema *schema, size_t position,
                      PyObject *const *items, size_t count)
{
    if (position + 1 != schema->positional_count ||
        schema->parameters[position].type != OPSCOPE__TYPE_INTS || count == 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!PyIndex_Check(items[i])) {
            return false;
        }
    }
    return count > 1 || schema->parameters[position].length == 0;
}

static int bind_keywords(const opscope_operator *op, PyObject *const *values, PyObject *names,
                         uint32_t *given, struct opscope__py_binding *out)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    Py_ssize_t count = PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        size_t position = 0;
        while (position < schema->count &&
               PyUnicode_CompareWithASCIIString(name, schema->parameters[position].name) != 0) {
            position++;
        }
        if (position == schema->count) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         opscope_operator_name(op), name);
            return -1;
        }
        if (*given & 1u << position) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                         opscope_operator_name(op), name);
            return -1;
        }
        *given |= 1u << position;
        out->count = position >= out->count ? position + 1 : out->count;
        if (bind_one(op, &schema->parameters[position], values[i], out,
                     &out->arguments[position]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int fill_defaults(const opscope_operator *op, uint32_t given,
                         struct opscope__py_binding *out)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    for (size_t i = 0; i < schema->count; i++) {
        if (given & 1u << i) {
            continue;
        }
        if (!schema->parameters[i].has_default) {
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' is missing",
                         opscope_operator_name(op), schema->parameters[i].name);
            return -1;
        }
        if (i < out->count) {
            out->arguments[i] = schema->parameters[i].otherwise;
        }
    }
    return 0;
}

/* Binds what stands without a name; sets the bit of each parameter it gives. */
static int bind_positional(const opscope_operator *op, PyObject *self, PyObject *const *positional,
                           size_t count, uint32_t *given, struct opscope__py_binding *out)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    size_t position = 0;
    if (self) {
        out->arguments[0].kind = OPSCOPE_ARGUMENT_TENSOR;
        out->arguments[0].as.tensor = opscope__py_core(self);
        position = 1;
    }
    for (size_t i = 0; i < count; i++, position++) {
        if (is_spread(schema, position, positional + i, count - i)) {
            if (bind_integers(out, &out->arguments[position], positional + i, count - i) < 0) {
                return -1;
            }
            position++;
            break;
        }
        if (position == schema->positional_count) {
            PyErr_Format(PyExc_TypeError, "%s() takes %zu positional arguments, %zu were given",
                         opscope_operator_name(op), schema->positional_count,
                         count + (self ? 1 : 0));
            return -1;
        }
        if (bind_one(op, &schema->parameters[position], positional[i], out,
                     &out->arguments[position]) < 0) {
            return -1;
        }
    }
    *given = (1u << position) - 1;
    out->count = position;
    return 0;
}

int opscope__py_bind(const opscope_operator *op, PyObject *self, PyObject *const *positional,
                     Py_ssize_t count, PyObject *keyword_names, struct opscope__py_binding *out)
{
    out->integer_count = out->tensor_count = out->kept_count = out->block_count = 0;
    uint32_t given = 0;
    if (bind_positional(op, self, positional, (size_t)count, &given, out) < 0 ||
        (keyword_names &&
         bind_keywords(op, positional + count, keyword_names, &given, out) < 0) ||
        fill_defaults(op, given, out) < 0) {
        opscope__py_unbind(out);
        return -1;
    }
    return 0;
}

void opscope__py_unbind(struct opscope__py_binding *binding)
{
    while (binding->kept_count > 0) {
        Py_DECREF(binding->kept[--binding->kept_count]);
    }
    while (binding->block_count > 0) {
        PyMem_Free(binding->blocks[--binding->block_count]);
    }
}
