/* Graphs of models: the type Graph. opscope.tensor.jit is what users import. */
#include "tensor/python/graph.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/clone.h"
#include "model/program/passes.h"
#include "model/graph/text.h"
#include "model/graph/verify.h"
#include "model/graph/writer.h"

typedef struct {
    PyObject_HEAD
    struct opscope__model_graph *core; /* never NULL once made */
} graph_object;

static PyTypeObject *graph_type;

struct opscope__model_graph *opscope__py_graph_core(PyObject *object)
{
    return Py_TYPE(object) == graph_type ? ((graph_object *)object)->core : NULL;
}

PyObject *opscope__py_graph_wrap(struct opscope__model_graph *core)
{
    graph_object *self = PyObject_New(graph_object, graph_type);
    if (self == NULL) {
        opscope__graph_release(core);
        return NULL;
    }
    self->core = core;
    return (PyObject *)self;
}

static void graph_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    opscope__graph_release(((graph_object *)self)->core);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    static char *names[] = {"text", NULL};
    const char *text;
    Py_ssize_t bytes;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "s#:Graph", names, &text, &bytes)) {
        return NULL;
    }
    struct opscope__model_graph *core = NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS status =
        opscope__graph_parse(text, (size_t)bytes, OPSCOPE__GRAPH_USUAL_BYTES, &core);
    if (status == OPSCOPE_OK) {
        status = opscope__graph_verify(core);
    }
    Py_END_ALLOW_THREADS if (status != OPSCOPE_OK)
    {
        opscope__graph_release(core);
        return opscope__py_raise(status);
    }
    return opscope__py_graph_wrap(core);
}

static PyObject *graph_str(PyObject *self)
{
    char *text;
    size_t bytes;
    int status = opscope__graph_print(((graph_object *)self)->core, &text, &bytes);
    if (status != OPSCOPE_OK) {
        return opscope__py_raise(status);
    }
    PyObject *result = PyUnicode_FromStringAndSize(text, (Py_ssize_t)bytes);
    free(text);
    return result;
}

static PyObject *graph_verify(PyObject *self, PyObject *unused)
{
    (void)unused;
    int status = opscope__graph_verify(((graph_object *)self)->core);
    return status == OPSCOPE_OK ? Py_NewRef(Py_None) : opscope__py_raise(status);
}

static PyObject *graph_copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct opscope__model_graph *core = opscope__graph_clone(((graph_object *)self)->core);
    return core != NULL ? opscope__py_graph_wrap(core) : opscope__py_raise(OPSCOPE_ERR_INVALID);
}

static PyObject *graph_run_pass(PyObject *self, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text == NULL) {
        return NULL;
    }
    const struct opscope__graph_pass *pass = opscope__graph_pass_find(text);
    size_t changed = 0;
    int status =
        pass != NULL ? pass->run(((graph_object *)self)->core, &changed) : OPSCOPE_ERR_INVALID;
    return status == OPSCOPE_OK ? PyLong_FromSize_t(changed) : opscope__py_raise(status);
}

/* ---- what a graph has ------------------------------------------------------------------------- */

PyObject *opscope__py_graph_type_text(const struct opscope__graph_type *type)
{
    struct opscope__graph_writer writer = {0};
    opscope__graph_write_type(&writer, type);
    PyObject *text =
        writer.failed ? PyErr_NoMemory()
                      : PyUnicode_FromStringAndSize(writer.text.at, (Py_ssize_t)writer.text.bytes);
    free(writer.text.at);
    return text;
}

PyObject *opscope__py_graph_value_name(const struct opscope__graph_value *value)
{
    return value->name != NULL ? PyUnicode_FromString(value->name)
                               : PyUnicode_FromFormat("%u", (unsigned)value->number);
}

/* Appends (name, type). */
static int append_value(PyObject *list, const struct opscope__graph_value *value)
{
    PyObject *name = opscope__py_graph_value_name(value),
             *type = opscope__py_graph_type_text(value->type);
    PyObject *pair = name != NULL && type != NULL ? PyTuple_Pack(2, name, type) : NULL;
    int status = pair != NULL ? PyList_Append(list, pair) : -1;
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(pair);
    return status;
}

static PyObject *graph_inputs(PyObject *self, void *unused)
{
    (void)unused;
    struct opscope__model_graph *core = ((graph_object *)self)->core;
    opscope__graph_number(core);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < core->body->inputs.count; i++) {
        if (append_value(list, core->body->inputs.at[i]) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *graph_outputs(PyObject *self, void *unused)
{
    (void)unused;
    struct opscope__model_graph *core = ((graph_object *)self)->core;
    opscope__graph_number(core);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list != NULL && i < core->body->outputs.count; i++) {
        if (append_value(list, core->body->outputs.at[i].value) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* Adds one to the number of `key` in a dict. */
static int count_one(PyObject *counts, const char *key)
{
    PyObject *name = PyUnicode_FromString(key);
    PyObject *known = name != NULL ? PyDict_GetItemWithError(counts, name) : NULL;
    PyObject *number = name == NULL || PyErr_Occurred()
                           ? NULL
                           : PyLong_FromLong(known != NULL ? PyLong_AsLong(known) + 1 : 1);
    int status = number != NULL ? PyDict_SetItem(counts, name, number) : -1;
    Py_XDECREF(name);
    Py_XDECREF(number);
    return status;
}

/* Counts the nodes of a block and of those inside it: by their kinds, or, of one kind alone, by
 * their attribute `name`. */
static int count_nodes(PyObject *counts, const struct opscope__graph_block *block, const char *kind)
{
    for (const struct opscope__graph_node *node = block->first; node != NULL; node = node->next) {
        const char *key = node->kind;
        if (kind != NULL) {
            const struct opscope__graph_constant *name = opscope__graph_attribute(node, "name");
            bool is_named = strcmp(node->kind, kind) == 0 && name != NULL &&
                            name->kind == OPSCOPE__GRAPH_CONSTANT_STRING;
            key = is_named ? name->as.text : NULL;
        }
        if (key != NULL && count_one(counts, key) < 0) {
            return -1;
        }
        for (uint32_t i = 0; i < node->block_count; i++) {
            if (count_nodes(counts, node->blocks[i], kind) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static PyObject *counted(PyObject *self, const char *kind)
{
    PyObject *counts = PyDict_New();
    if (counts != NULL && count_nodes(counts, ((graph_object *)self)->core->body, kind) < 0) {
        Py_CLEAR(counts);
    }
    return counts;
}

static PyObject *named(PyObject *self, const char *kind)
{
    PyObject *counts = counted(self, kind);
    PyObject *names = counts != NULL ? PyDict_Keys(counts) : NULL;
    Py_XDECREF(counts);
    return names;
}

static PyObject *graph_operators(PyObject *self, PyObject *unused)
{
    (void)unused;
    return counted(self, NULL);
}

static PyObject *graph_attributes(PyObject *self, PyObject *unused)
{
    (void)unused;
    return named(self, "prim::GetAttr");
}

static PyObject *graph_callees(PyObject *self, PyObject *unused)
{
    (void)unused;
    PyObject *called = named(self, "prim::CallFunction"), *forked = named(self, "prim::Fork");
    PyObject *both = called != NULL && forked != NULL ? PySequence_Concat(called, forked) : NULL;
    Py_XDECREF(called);
    Py_XDECREF(forked);
    return both;
}

/* ---- the type ------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"verify", graph_verify, METH_NOARGS,
     "verify($self)\n--\n\nValueError with the node and the reason if the graph is wrong."},
    {"copy", graph_copy, METH_NOARGS, "copy($self)\n--\n\nA graph of its own with the same text."},
    {"run_pass", graph_run_pass, METH_O,
     "run_pass($self, name, /)\n--\n\nRuns a pass; how many nodes it removed or replaced. "
     "ValueError with all names for an unknown one."},
    {"operators", graph_operators, METH_NOARGS,
     "operators($self)\n--\n\nHow many nodes of each kind it has, those in blocks included."},
    {"attributes", graph_attributes, METH_NOARGS,
     "attributes($self)\n--\n\nThe names of the attributes that it uses, in their order."},
    {"callees", graph_callees, METH_NOARGS,
     "callees($self)\n--\n\nThe names of the functions that it calls, in their order."},
    {0},
};

static PyGetSetDef getters[] = {
    {"inputs", graph_inputs, NULL, "(name, type) of each input.", NULL},
    {"outputs", graph_outputs, NULL, "(name, type) of each value that it returns.", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "Graph(text)\n--\n\nThe graph of a function; native/model/GRAPHS.md has its text."},
    {Py_tp_new, (void *)graph_new},
    {Py_tp_dealloc, (void *)graph_dealloc},
    {Py_tp_str, (void *)graph_str},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {0},
};

static PyType_Spec spec = {
    .name = "opscope._tensor.Graph",
    .basicsize = sizeof(graph_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int opscope__py_add_graph(PyObject *module)
{
    graph_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return graph_type == NULL ? -1 : PyModule_AddObjectRef(module, "Graph", (PyObject *)graph_type);
}
