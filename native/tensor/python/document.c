/* read_pickle(...): a foreign pickle as Python objects, made by functions that the caller gives.
 * The pickle itself runs nothing (model/document/document.h). */
#include "tensor/python/python.h"

#include "model/document/pickle.h"
#include "tensor/python/buffer_abi.h"

/* One conversion: the functions for what is no plain value, and the objects made so far. An item
 * that the pickle refers to twice becomes one object. */
struct conversion {
    PyObject *call;       /* (name, arguments, state, pairs) -> object */
    PyObject *global;     /* (name) -> object */
    PyObject *persistent; /* (id) -> object */
    PyObject *made;       /* dict: address of the item -> object */
};

static PyObject *convert(struct conversion *conversion, const struct opscope__item *item);

static PyObject *convert_sequence(struct conversion *conversion, const struct opscope__item *item)
{
    PyObject *list = PyList_New(item->count);
    for (uint32_t i = 0; list != NULL && i < item->count; i++) {
        PyObject *one = convert(conversion, item->as.items[i]);
        if (one == NULL || PyList_SetItem(list, i, one) < 0) {
            Py_CLEAR(list);
        }
    }
    if (list == NULL || item->kind == OPSCOPE__ITEM_LIST) {
        return list;
    }
    PyObject *tuple = PyList_AsTuple(list);
    Py_DECREF(list);
    return tuple;
}

static PyObject *convert_pairs(struct conversion *conversion, const struct opscope__pair *pairs,
                               uint32_t count)
{
    PyObject *map = PyDict_New();
    for (uint32_t i = 0; map != NULL && i < count; i++) {
        PyObject *key = convert(conversion, pairs[i].key);
        PyObject *value = key != NULL ? convert(conversion, pairs[i].value) : NULL;
        if (value == NULL || PyDict_SetItem(map, key, value) < 0) {
            Py_CLEAR(map);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return map;
}

static PyObject *convert_call(struct conversion *conversion, const struct opscope__item *item)
{
    const struct opscope__object *object = item->as.object;
    const struct opscope__item *function = object->function;
    PyObject *result = NULL;
    PyObject *arguments = convert(conversion, object->arguments);
    PyObject *state =
        object->state != NULL ? convert(conversion, object->state) : Py_NewRef(Py_None);
    PyObject *pairs = convert_pairs(conversion, object->pairs, item->count);
    if (arguments != NULL && state != NULL && pairs != NULL) {
        result = PyObject_CallFunction(conversion->call, "s#OOO", function->as.text,
                                       (Py_ssize_t)function->count, arguments, state, pairs);
    }
    Py_XDECREF(arguments);
    Py_XDECREF(state);
    Py_XDECREF(pairs);
    return result;
}

static PyObject *convert_new(struct conversion *conversion, const struct opscope__item *item)
{
    switch ((enum opscope__item_kind)item->kind) {
    case OPSCOPE__ITEM_LIST:
    case OPSCOPE__ITEM_TUPLE:
        return convert_sequence(conversion, item);
    case OPSCOPE__ITEM_MAP:
        return convert_pairs(conversion, item->as.pairs, item->count);
    case OPSCOPE__ITEM_CALL:
        return convert_call(conversion, item);
    case OPSCOPE__ITEM_GLOBAL:
        return PyObject_CallFunction(conversion->global, "s#", item->as.text,
                                     (Py_ssize_t)item->count);
    case OPSCOPE__ITEM_PERSISTENT: {
        PyObject *id = convert(conversion, item->as.id);
        PyObject *object =
            id != NULL ? PyObject_CallFunctionObjArgs(conversion->persistent, id, NULL) : NULL;
        Py_XDECREF(id);
        return object;
    }
    case OPSCOPE__ITEM_NONE:
    case OPSCOPE__ITEM_BOOL:
    case OPSCOPE__ITEM_INT:
    case OPSCOPE__ITEM_FLOAT:
    case OPSCOPE__ITEM_TEXT:
    case OPSCOPE__ITEM_BYTES:
        break;
    }
    PyErr_SetString(PyExc_SystemError, "an item of unknown kind");
    return NULL;
}

/* Recursion is no deeper than OPSCOPE__DEPTH_LIMIT. */
static PyObject *convert(struct conversion *conversion, const struct opscope__item *item)
{
    switch ((enum opscope__item_kind)item->kind) {
    case OPSCOPE__ITEM_NONE:
        Py_RETURN_NONE;
    case OPSCOPE__ITEM_BOOL:
        return PyBool_FromLong(item->as.boolean);
    case OPSCOPE__ITEM_INT:
        return PyLong_FromLongLong(item->as.integer);
    case OPSCOPE__ITEM_FLOAT:
        return PyFloat_FromDouble(item->as.real);
    case OPSCOPE__ITEM_TEXT:
        return PyUnicode_FromStringAndSize(item->as.text, item->count);
    case OPSCOPE__ITEM_BYTES:
        return PyBytes_FromStringAndSize(item->as.text, item->count);
    default:
        break;
    }
    PyObject *address = PyLong_FromVoidPtr((void *)(uintptr_t)item);
    PyObject *object = address != NULL ? PyDict_GetItemWithError(conversion->made, address) : NULL;
    if (object != NULL) {
        Py_INCREF(object);
    } else if (address != NULL && !PyErr_Occurred()) {
        object = convert_new(conversion, item);
        if (object != NULL && PyDict_SetItem(conversion->made, address, object) < 0) {
            Py_CLEAR(object);
        }
    }
    Py_XDECREF(address);
    return object;
}

/* The texts of a tuple of str, borrowed from it; ended by NULL. The array is PyMem_Free's. */
static const char **texts_of(PyObject *tuple)
{
    const Py_ssize_t count = PyTuple_Size(tuple);
    const char **texts = PyMem_Calloc((size_t)count + 1, sizeof *texts);
    if (texts == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
        if (texts[i] == NULL) {
            PyMem_Free(texts);
            return NULL;
        }
    }
    return texts;
}

static PyObject *read_pickle(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer bytes;
    PyObject *names, *prefixes;
    struct conversion conversion;
    if (!PyArg_ParseTuple(args, "y*O!O!OOO:read_pickle", &bytes, &PyTuple_Type, &names,
                          &PyTuple_Type, &prefixes, &conversion.call, &conversion.global,
                          &conversion.persistent)) {
        return NULL;
    }
    struct opscope__pickle_globals globals = {.names = texts_of(names)};
    globals.prefixes = globals.names != NULL ? texts_of(prefixes) : NULL;
    PyObject *object = NULL;
    if (globals.prefixes != NULL) {
        struct opscope__document *document = NULL;
        int status;
        Py_BEGIN_ALLOW_THREADS status =
            opscope__pickle_parse(bytes.buf, (size_t)bytes.len, &globals, &document);
        Py_END_ALLOW_THREADS conversion.made = status == OPSCOPE_OK ? PyDict_New() : NULL;
        if (conversion.made != NULL) {
            object = convert(&conversion, opscope__document_root(document));
            Py_DECREF(conversion.made);
        } else if (status != OPSCOPE_OK) {
            opscope__py_raise(status);
        }
        opscope__document_release(document);
    }
    PyMem_Free((void *)(uintptr_t)globals.names);
    PyMem_Free((void *)(uintptr_t)globals.prefixes);
    opscope__buffers.release(&bytes);
    return object;
}

PyMethodDef opscope__py_document_functions[] = {
    {"read_pickle", read_pickle, METH_VARARGS,
     "read_pickle(data, names, prefixes, call, global_of, persistent, /)\n--\n\nThe object of a "
     "pickle, whose globals must be among `names` or begin with one of `prefixes`. Nothing of it runs: call(name, arguments, state, pairs) makes "
     "what a global would make, global_of(name) gives a global itself, persistent(id) an "
     "object outside. ValueError with the reason and the byte offset."},
    {0},
};
