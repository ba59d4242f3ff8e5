/* read_graph(text): the text of a graph as tuples, so that Python needs no parser of its own.
 *
 * A block is (inputs, nodes, results): inputs are pairs (name, type), results are names. A node is
 * (kind, input names, outputs, attributes, blocks, scope, location): outputs are pairs as well,
 * attributes a dict, scope and location a str or None. A value without a name has its number. */
#include "model/graph/text.h"
#include "tensor/python/graph.h"

/* Fills a tuple with what `make(items, i)` returns for each i. */
static PyObject *tuple_of(PyObject *(*make)(const void *items, uint32_t index), const void *items,
                          uint32_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (uint32_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *item = make(items, i);
        if (item == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

static PyObject *text_or_none(const char *text)
{
    return text != NULL ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
}

static PyObject *used(const void *items, uint32_t index)
{
    return opscope__py_graph_value_name(((const struct opscope__graph_use *)items)[index].value);
}

static PyObject *defined(const void *items, uint32_t index)
{
    const struct opscope__graph_value *value = ((struct opscope__graph_value *const *)items)[index];
    return Py_BuildValue("(NN)", opscope__py_graph_value_name(value),
                         opscope__py_graph_type_text(value->type));
}

static PyObject *constant(const void *items, uint32_t index)
{
    const struct opscope__graph_constant *value =
        &((const struct opscope__graph_constant *)items)[index];
    switch ((enum opscope__graph_constant_kind)value->kind) {
    case OPSCOPE__GRAPH_CONSTANT_BOOL:
        return PyBool_FromLong(value->as.boolean);
    case OPSCOPE__GRAPH_CONSTANT_INT:
        return PyLong_FromLongLong(value->as.integer);
    case OPSCOPE__GRAPH_CONSTANT_FLOAT:
        return PyFloat_FromDouble(value->as.real);
    case OPSCOPE__GRAPH_CONSTANT_STRING:
        return PyUnicode_FromStringAndSize(value->as.text, (Py_ssize_t)value->count);
    case OPSCOPE__GRAPH_CONSTANT_LIST: {
        PyObject *tuple = tuple_of(constant, value->as.items, value->count);
        PyObject *list = tuple != NULL ? PySequence_List(tuple) : NULL;
        Py_XDECREF(tuple);
        return list;
    }
    case OPSCOPE__GRAPH_CONSTANT_NONE:
        break;
    }
    return Py_NewRef(Py_None);
}

static PyObject *attributes_of(const struct opscope__graph_node *node)
{
    PyObject *attributes = PyDict_New();
    for (uint32_t i = 0; attributes != NULL && i < node->attribute_count; i++) {
        PyObject *value = constant(&node->attributes[i].value, 0);
        if (value == NULL ||
            PyDict_SetItemString(attributes, node->attributes[i].name, value) < 0) {
            Py_CLEAR(attributes);
        }
        Py_XDECREF(value);
    }
    return attributes;
}

static PyObject *block_tuple(const void *items, uint32_t index);

static PyObject *node_tuple(const struct opscope__graph_node *node)
{
    return Py_BuildValue(
        "(sNNNNNN)", node->kind, tuple_of(used, node->inputs.at, node->inputs.count),
        tuple_of(defined, node->outputs.at, node->outputs.count), attributes_of(node),
        tuple_of(block_tuple, node->blocks, node->block_count), text_or_none(node->scope),
        text_or_none(node->location));
}

/* Recursion is no deeper than OPSCOPE__GRAPH_DEPTH_LIMIT. */
static PyObject *block_tuple(const void *items, uint32_t index)
{
    const struct opscope__graph_block *block = ((struct opscope__graph_block *const *)items)[index];
    PyObject *nodes = PyList_New(0);
    for (const struct opscope__graph_node *node = block->first; nodes != NULL && node != NULL;
         node = node->next) {
        PyObject *tuple = node_tuple(node);
        if (tuple == NULL || PyList_Append(nodes, tuple) < 0) {
            Py_CLEAR(nodes);
        }
        Py_XDECREF(tuple);
    }
    if (nodes == NULL) {
        return NULL;
    }
    PyObject *frozen = PyList_AsTuple(nodes);
    Py_DECREF(nodes);
    return Py_BuildValue("(NNN)", tuple_of(defined, block->inputs.at, block->inputs.count), frozen,
                         tuple_of(used, block->outputs.at, block->outputs.count));
}

static PyObject *read_graph(PyObject *module, PyObject *text)
{
    (void)module;
    Py_ssize_t bytes;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &bytes);
    if (utf8 == NULL) {
        return NULL;
    }
    struct opscope__model_graph *graph;
    int status = opscope__graph_parse(utf8, (size_t)bytes, OPSCOPE__GRAPH_USUAL_BYTES, &graph);
    if (status < 0) {
        return opscope__py_raise(status);
    }
    (void)opscope__graph_number(graph);
    PyObject *tuple = block_tuple(&graph->body, 0);
    opscope__graph_release(graph);
    return tuple;
}

PyMethodDef opscope__py_graph_tree_functions[] = {
    {"read_graph", read_graph, METH_O,
     "The text of a graph as tuples (native/tensor/python/graph_tree.c). ValueError names line and "
     "column."},
    {0},
};
