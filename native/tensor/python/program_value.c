/* Python objects as values of programs, and back. */
#include "tensor/python/program_value.h"

#include "tensor/python/graph.h"

/* ---- from Python ------------------------------------------------------------------------------ */

/* Parts of a list or tuple; `step` 0: all are of one type. */
static bool items_from_python(struct opscope__heap *heap, PyObject *object,
                              const struct opscope__graph_type *type, size_t step,
                              struct opscope__value *out)
{
    Py_ssize_t count = PySequence_Size(object);
    if (count < 0 || (step > 0 && (uint32_t)count != type->count)) {
        return false;
    }
    struct opscope__sequence *made = opscope__sequence_new(heap, (size_t)count);
    bool fits = made != NULL;
    for (Py_ssize_t i = 0; fits && i < count; i++) {
        struct opscope__value item;
        PyObject *part = PySequence_GetItem(object, i);
        fits = part != NULL &&
               opscope__py_to_value(heap, part, type->parts[(size_t)i * step], &item) &&
               opscope__sequence_push(made, item) == OPSCOPE_OK;
        Py_XDECREF(part);
    }
    if (!fits) {
        opscope__sequence_release(made);
        return false;
    }
    *out = step > 0 ? opscope__value_tuple(made) : opscope__value_list(made);
    return true;
}

static bool text_from_python(struct opscope__heap *heap, PyObject *object,
                             struct opscope__value *out)
{
    Py_ssize_t bytes;
    const char *at = PyUnicode_AsUTF8AndSize(object, &bytes);
    struct opscope__text *text = at != NULL ? opscope__text_new(heap, at, (size_t)bytes) : NULL;
    *out = opscope__value_text(text);
    return text != NULL;
}

static bool int_from_python(PyObject *object, struct opscope__value *out)
{
    long long number = PyLong_AsLongLong(object);
    *out = opscope__value_int(number);
    return number != -1 || !PyErr_Occurred();
}

bool opscope__py_to_value(struct opscope__heap *heap, PyObject *object,
                          const struct opscope__graph_type *type, struct opscope__value *out)
{
    switch ((enum opscope__graph_type_kind)type->kind) {
    case OPSCOPE__GRAPH_TENSOR:
        if (!opscope__py_is_tensor(object)) {
            return false;
        }
        *out = opscope__value_tensor(opscope_tensor_retain(opscope__py_core(object)));
        return true;
    case OPSCOPE__GRAPH_INT:
        return PyLong_Check(object) && !PyBool_Check(object) && int_from_python(object, out);
    case OPSCOPE__GRAPH_FLOAT:
        *out = opscope__value_float(PyFloat_Check(object) ? PyFloat_AsDouble(object) : 0);
        return PyFloat_Check(object);
    case OPSCOPE__GRAPH_BOOL:
        *out = opscope__value_bool(object == Py_True);
        return PyBool_Check(object);
    case OPSCOPE__GRAPH_STR:
        return PyUnicode_Check(object) && text_from_python(heap, object, out);
    case OPSCOPE__GRAPH_NONE:
        *out = opscope__value_none;
        return object == Py_None;
    case OPSCOPE__GRAPH_DTYPE:
        if (!opscope__py_is_dtype(object)) {
            return false;
        }
        *out = opscope__value_dtype(opscope__py_dtype_value(object));
        return true;
    case OPSCOPE__GRAPH_OPTIONAL:
        *out = opscope__value_none;
        return object == Py_None || opscope__py_to_value(heap, object, type->parts[0], out);
    case OPSCOPE__GRAPH_LIST:
        return PyList_Check(object) && items_from_python(heap, object, type, 0, out);
    case OPSCOPE__GRAPH_TUPLE:
        return PyTuple_Check(object) && items_from_python(heap, object, type, 1, out);
    default:
        return false;
    }
}

void opscope__py_fail_input(const struct opscope__graph_value *wanted, PyObject *given)
{
    PyObject *type = opscope__py_graph_type_text(wanted->type);
    PyObject *given_type = PyObject_GetAttrString((PyObject *)Py_TYPE(given), "__name__");
    PyObject *number = PyUnicode_FromFormat("%u", (unsigned)wanted->number);
    PyObject *name = wanted->name != NULL ? PyUnicode_FromString(wanted->name) : number;
    if (type != NULL && given_type != NULL && number != NULL && name != NULL) {
        PyErr_Format(PyExc_TypeError, "input %U must be %U, not %U", name, type, given_type);
    }
    Py_XDECREF(type);
    Py_XDECREF(given_type);
    Py_XDECREF(number);
    if (name != number) {
        Py_XDECREF(name);
    }
}

/* ---- to Python -------------------------------------------------------------------------------- */

static PyObject *to_python(const struct opscope__value *value);

static PyObject *items_to_python(const struct opscope__sequence *sequence, bool is_tuple)
{
    PyObject *list = PyList_New((Py_ssize_t)sequence->count);
    for (size_t i = 0; list != NULL && i < sequence->count; i++) {
        PyObject *item = to_python(&sequence->items[i]);
        if (item == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SetItem(list, (Py_ssize_t)i, item);
        }
    }
    if (list == NULL || !is_tuple) {
        return list;
    }
    PyObject *tuple = PyList_AsTuple(list);
    Py_DECREF(list);
    return tuple;
}

static PyObject *to_python(const struct opscope__value *value)
{
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_BOOL:
        return PyBool_FromLong(value->as.integer != 0);
    case OPSCOPE__VALUE_INT:
        return PyLong_FromLongLong(value->as.integer);
    case OPSCOPE__VALUE_FLOAT:
        return PyFloat_FromDouble(value->as.real);
    case OPSCOPE__VALUE_DTYPE:
        return opscope__py_dtype((opscope_dtype)value->as.integer);
    case OPSCOPE__VALUE_TENSOR:
        return opscope__py_tensor_wrap(opscope_tensor_retain(value->as.tensor));
    case OPSCOPE__VALUE_TEXT:
        return PyUnicode_FromStringAndSize(value->as.text->at, (Py_ssize_t)value->as.text->bytes);
    case OPSCOPE__VALUE_LIST:
    case OPSCOPE__VALUE_TUPLE:
        return items_to_python(value->as.sequence, value->kind == OPSCOPE__VALUE_TUPLE);
    default:
        Py_RETURN_NONE;
    }
}

PyObject *opscope__py_value_tuple(const struct opscope__value *values, size_t count)
{
    const struct opscope__sequence all = {.count = count,
                                          .items = (struct opscope__value *)(uintptr_t)values};
    return items_to_python(&all, true);
}

PyObject *opscope__py_results(const struct opscope__value *values, size_t count)
{
    return count == 0   ? Py_NewRef(Py_None)
           : count == 1 ? to_python(&values[0])
                        : opscope__py_value_tuple(values, count);
}
