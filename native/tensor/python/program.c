/* Programs: graphs that are run without Python: the type Program. */
#include <stdlib.h>
#include <string.h>

#include "model/graph/clone.h"
#include "model/program/program.h"
#include "opscope/debug_info.h"
#include "tensor/python/graph.h"
#include "tensor/python/program_value.h"

typedef struct {
    PyObject_HEAD
    struct opscope__program *core; /* never NULL once made */
    PyObject *entry;
    char *model_id; /* the label of its runs; NULL: none */
} program_object;

static PyTypeObject *program_type;

/* ---- a run: what calls back into Python takes the GIL --------------------------------------------- */

/* So that an endless loop ends with Ctrl+C. */
static int check_signals(void *user)
{
    (void)user;
    PyGILState_STATE state = PyGILState_Ensure();
    int status = PyErr_CheckSignals() < 0 ? opscope__py_fail_with_exception("interrupted") : 0;
    PyGILState_Release(state);
    return status;
}

/* By Python's own print, for tensors and for a sys.stdout that is replaced. */
static int print_values(void *user, const struct opscope__value *values, size_t count)
{
    (void)user;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *print = builtins != NULL ? PyObject_GetAttrString(builtins, "print") : NULL;
    PyObject *arguments = print != NULL ? opscope__py_value_tuple(values, count) : NULL;
    PyObject *result = arguments != NULL ? PyObject_CallObject(print, arguments) : NULL;
    int status = result != NULL ? 0 : opscope__py_fail_with_exception("print failed");
    Py_XDECREF(builtins);
    Py_XDECREF(print);
    Py_XDECREF(arguments);
    Py_XDECREF(result);
    PyGILState_Release(state);
    return status;
}

static PyObject *run(struct opscope__program *core, struct opscope__heap *heap,
                     const struct opscope__value *inputs)
{
    const struct opscope__run_options options = {.poll = check_signals, .print = print_values};
    uint32_t count = opscope__program_graph(core)->body->outputs.count;
    struct opscope__value *outputs = PyMem_Calloc((size_t)count + 1, sizeof *outputs);
    if (outputs == NULL) {
        return PyErr_NoMemory();
    }
    int status;
    Py_BEGIN_ALLOW_THREADS status = opscope__program_run(core, heap, inputs, &options, outputs);
    Py_END_ALLOW_THREADS PyObject *result =
        status == OPSCOPE_OK ? opscope__py_results(outputs, count) : opscope__py_raise(status);
    for (uint32_t i = 0; i < count; i++) {
        opscope__value_release(&outputs[i]);
    }
    PyMem_Free(outputs);
    return result;
}

/* The same with the label of the program. Without memory for it, the run has none. */
static PyObject *run_labelled(const program_object *self, struct opscope__heap *heap,
                              const struct opscope__value *inputs)
{
    opscope_debug_info_guard guard;
    const bool has_label =
        self->model_id != NULL &&
        opscope_debug_info_push("model_id", self->model_id, &guard) == OPSCOPE_OK;
    PyObject *result = run(self->core, heap, inputs);
    if (has_label) {
        opscope_debug_info_pop(&guard);
    }
    return result;
}

static PyObject *program_call(PyObject *object, PyObject *args, PyObject *keywords)
{
    program_object *self = (program_object *)object;
    const struct opscope__graph_values *taken = &opscope__program_graph(self->core)->body->inputs;
    Py_ssize_t given = PyTuple_Size(args);
    if (keywords != NULL && PyDict_Size(keywords) > 0) {
        PyErr_SetString(PyExc_TypeError, "a program takes its inputs by position");
        return NULL;
    }
    if (given != (Py_ssize_t)taken->count) {
        PyErr_Format(PyExc_TypeError, "%U takes %u inputs, not %zd", self->entry,
                     (unsigned)taken->count, given);
        return NULL;
    }
    struct opscope__heap heap = {0};
    struct opscope__value *inputs = PyMem_Calloc((size_t)given + 1, sizeof *inputs);
    PyObject *result = inputs != NULL ? NULL : PyErr_NoMemory();
    Py_ssize_t made = 0;
    for (; inputs != NULL && made < given; made++) {
        PyObject *argument = PyTuple_GetItem(args, made);
        if (!opscope__py_to_value(&heap, argument, taken->at[made]->type, &inputs[made])) {
            inputs[made] = opscope__value_none;
            if (!PyErr_Occurred()) {
                opscope__py_fail_input(taken->at[made], argument);
            }
            break;
        }
    }
    if (inputs != NULL && made == given) {
        result = run_labelled(self, &heap, inputs);
    }
    for (Py_ssize_t i = 0; i < made; i++) {
        opscope__value_release(&inputs[i]);
    }
    PyMem_Free(inputs);
    return result;
}

/* ---- the type ----------------------------------------------------------------------------------- */

/* Functions and attributes with their names, borrowed from the dicts. */
struct named {
    struct opscope__graph_function *functions;
    struct opscope__program_attribute *attributes;
};

static int read_functions(PyObject *dict, struct named *out)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, count = 0;
    out->functions = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *out->functions);
    while (out->functions != NULL && PyDict_Next(dict, &at, &key, &value)) {
        struct opscope__model_graph *graph = opscope__py_graph_core(value);
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (graph == NULL || name == NULL) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "functions must be Graphs by their names");
            }
            return -1;
        }
        out->functions[count++] = (struct opscope__graph_function){name, graph};
    }
    return out->functions != NULL ? 0 : (PyErr_NoMemory(), -1);
}

static int read_attributes(PyObject *dict, struct named *out)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, count = 0;
    out->attributes = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *out->attributes);
    while (out->attributes != NULL && PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
        if (name == NULL || !opscope__py_is_tensor(value)) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_TypeError, "attributes must be Tensors by their names");
            }
            return -1;
        }
        out->attributes[count++] =
            (struct opscope__program_attribute){name, opscope__py_core(value)};
    }
    return out->attributes != NULL ? 0 : (PyErr_NoMemory(), -1);
}

/* Takes the program, also on failure. */
static PyObject *wrap(struct opscope__program *core, PyObject *entry, const char *model_id)
{
    program_object *self = PyObject_New(program_object, program_type);
    if (self == NULL) {
        opscope__program_release(core);
        return NULL;
    }
    self->core = core;
    self->entry = Py_NewRef(entry);
    self->model_id = *model_id != '\0' ? strdup(model_id) : NULL;
    return (PyObject *)self;
}

static PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type;
    static char *names[] = {"functions", "attributes",   "entry", "optimize",
                            "model_id",  "reuse_memory", NULL};
    PyObject *functions, *attributes, *entry = NULL;
    const char *model_id = "";
    int optimizes = 1, reuses = 1;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!|Upsp:Program", names, &PyDict_Type,
                                     &functions, &PyDict_Type, &attributes, &entry, &optimizes,
                                     &model_id, &reuses)) {
        return NULL;
    }
    entry = entry != NULL ? Py_NewRef(entry) : PyUnicode_FromString("forward");
    const char *entry_name = entry != NULL ? PyUnicode_AsUTF8AndSize(entry, NULL) : NULL;
    struct named named = {0};
    PyObject *result = NULL;
    if (entry_name != NULL && read_functions(functions, &named) == 0 &&
        read_attributes(attributes, &named) == 0) {
        const struct opscope__program_source source = {
            .functions = named.functions,
            .function_count = (size_t)PyDict_Size(functions),
            .attributes = named.attributes,
            .attribute_count = (size_t)PyDict_Size(attributes),
            .entry = entry_name,
            .is_as_written = optimizes == 0,
            .keeps_operands = reuses == 0};
        struct opscope__program *core;
        int status = opscope__program_new(&source, &core);
        result = status == OPSCOPE_OK ? wrap(core, entry, model_id) : opscope__py_raise(status);
    }
    PyMem_Free(named.functions);
    PyMem_Free(named.attributes);
    Py_XDECREF(entry);
    return result;
}

static void program_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    program_object *self = (program_object *)object;
    opscope__program_release(self->core);
    Py_DECREF(self->entry);
    free(self->model_id);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *program_graph(PyObject *self, void *unused)
{
    (void)unused;
    /* Only the numbers of its values change, under the GIL. */
    struct opscope__model_graph *graph =
        (struct opscope__model_graph *)(uintptr_t)opscope__program_graph(
            ((program_object *)self)->core);
    struct opscope__model_graph *copy = opscope__graph_clone(graph);
    return copy != NULL ? opscope__py_graph_wrap(copy) : opscope__py_raise(OPSCOPE_ERR_INVALID);
}

static PyGetSetDef getters[] = {
    {"graph", program_graph, NULL, "A copy of the entry's graph as it runs.", NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Program(functions, attributes, entry='forward', optimize=True, model_id='')\n--\n\n"
     "Graphs by their names, which are run without Python; native/model/GRAPHS.md has "
     "their meaning. optimize: run the passes first. model_id: the label of its runs."},
    {Py_tp_new, (void *)program_new},
    {Py_tp_dealloc, (void *)program_dealloc},
    {Py_tp_call, (void *)program_call},
    {Py_tp_getset, getters},
    {0},
};

static PyType_Spec spec = {
    .name = "opscope._tensor.Program",
    .basicsize = sizeof(program_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

int opscope__py_add_program(PyObject *module)
{
    program_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return program_type == NULL
               ? -1
               : PyModule_AddObjectRef(module, "Program", (PyObject *)program_type);
}
