/* Every operator of the core's table as a Python function, and as a method of Tensor.
 *
 * No operator is named here: names, parameters and docs come from the table. A function finds its
 * operator through the object it is bound to. A method is bound to the tensor, and C has no
 * closures, so each method is a C function of its own with a constant number.
 */
#include "tensor/python/python.h"

#include <string.h>

#include "opscope/autograd.h"
#include "tensor/core/registry.h"

typedef struct {
    PyObject_HEAD
    const opscope_operator *op;
} operator_object;

static PyTypeObject *operator_type;
static PyObject *operator_table; /* the module's `operators`: a dict by name */

/* Operators that are methods, by the number of their C function. */
enum { METHOD_LIMIT = 512 };
static const opscope_operator *method_operators[METHOD_LIMIT];
static size_t method_count;

/* "add_" of "core::add_". */
static const char *short_name(const opscope_operator *op)
{
    const char *name = opscope_operator_name(op);
    const char *after = strstr(name, "::");
    return after ? after + 2 : name;
}

static PyObject *call_bound(const opscope_operator *op, PyObject *self, PyObject *const *args,
                            Py_ssize_t count, PyObject *names)
{
    struct opscope__py_binding binding;
    if (opscope__py_bind(op, self, args, count, names, &binding) < 0) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Format(PyExc_OverflowError, "%s(): an integer is beyond 64 bits",
                         opscope_operator_name(op));
        }
        return NULL;
    }
    if (!self && count > 0 && opscope__py_is_tensor(args[0])) {
        self = args[0];
    }
    PyObject *result =
        binding.results && binding.results != Py_None
            ? opscope__py_call_out(op, binding.arguments, binding.count, binding.results)
            : opscope__py_call(op, binding.arguments, binding.count, self);
    bool requires_grad = binding.requires_grad;
    opscope__py_unbind(&binding);
    if (result && requires_grad) {
        int status = opscope_tensor_set_requires_grad(opscope__py_core(result), true);
        if (status != OPSCOPE_OK) {
            Py_DECREF(result);
            return opscope__py_raise(status);
        }
    }
    return result;
}

/* ---- methods ---------------------------------------------------------------------------------- */

/* METHODS(X) is X(000) to X(1ff). clang-format breaks these lines at another place each time. */
/* clang-format off */
#define METHODS(X) PAGE(X, 0) PAGE(X, 1)
#define PAGE(X, p)                                                                                 \
    ROW(X, p##0) ROW(X, p##1) ROW(X, p##2) ROW(X, p##3) ROW(X, p##4) ROW(X, p##5) ROW(X, p##6)     \
    ROW(X, p##7) ROW(X, p##8) ROW(X, p##9) ROW(X, p##a) ROW(X, p##b) ROW(X, p##c) ROW(X, p##d)     \
    ROW(X, p##e) ROW(X, p##f)
#define ROW(X, r)                                                                                  \
    X(r##0) X(r##1) X(r##2) X(r##3) X(r##4) X(r##5) X(r##6) X(r##7) X(r##8) X(r##9) X(r##a)        \
    X(r##b) X(r##c) X(r##d) X(r##e) X(r##f)
/* clang-format on */

typedef PyObject *(*method)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

#define DEFINE(number)                                                                             \
    static PyObject *method_##number(PyObject *self, PyObject *const *args, Py_ssize_t count,      \
                                     PyObject *names)                                              \
    {                                                                                              \
        return call_bound(method_operators[0x##number], self, args, count, names);                 \
    }
METHODS(DEFINE)

#define NAME(number) method_##number,
static const method METHOD_FUNCTIONS[METHOD_LIMIT] = {METHODS(NAME)};

/* ---- functions -------------------------------------------------------------------------------- */

static PyObject *call_function(PyObject *self, PyObject *const *args, Py_ssize_t count,
                               PyObject *names)
{
    return call_bound(((operator_object *)self)->op, NULL, args, count, names);
}

/* operators["mine::scale"](x, 2): called like a type, with a tuple and a dict. */
static PyObject *call_operator(PyObject *self, PyObject *args, PyObject *keywords)
{
    Py_ssize_t positional = PyTuple_Size(args), named = keywords ? PyDict_Size(keywords) : 0;
    PyObject **given = PyMem_Malloc((size_t)(positional + named + 1) * sizeof *given);
    PyObject *names = named > 0 ? PyTuple_New(named) : NULL;
    if (!given || (named > 0 && !names)) {
        PyMem_Free(given);
        Py_XDECREF(names);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < positional; i++) {
        given[i] = PyTuple_GetItem(args, i);
    }
    PyObject *name, *value;
    for (Py_ssize_t at = 0, i = 0; named > 0 && PyDict_Next(keywords, &at, &name, &value); i++) {
        given[positional + i] = value;
        PyTuple_SetItem(names, i, Py_NewRef(name));
    }
    PyObject *result = call_function(self, given, positional, names);
    PyMem_Free(given);
    Py_XDECREF(names);
    return result;
}

/* ---- the table in Python --------------------------------------------------------------------- */

static const struct opscope__operator_spec *spec_of(PyObject *self)
{
    return opscope__operator_spec(((operator_object *)self)->op);
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(opscope_operator_name(((operator_object *)self)->op));
}

static PyObject *get_schema(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(spec_of(self)->schema);
}

static PyObject *get_doc(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(spec_of(self)->doc ? spec_of(self)->doc : "");
}

static PyObject *get_samples(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(spec_of(self)->samples ? spec_of(self)->samples : "");
}

static PyObject *get_is_differentiable(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(spec_of(self)->backward != NULL || spec_of(self)->is_composite);
}

static PyObject *get_node_name(PyObject *self, void *unused)
{
    (void)unused;
    const char *name = opscope__operator_node_name(((operator_object *)self)->op);
    return name ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
}

static PyObject *get_is_view(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(spec_of(self)->is_view);
}

static PyObject *get_is_composite(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(spec_of(self)->is_composite);
}

static PyObject *get_takes_numbers(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(spec_of(self)->takes_numbers);
}

static PyObject *get_parameters(PyObject *self, void *unused)
{
    (void)unused;
    const struct opscope__schema *schema = opscope__operator_schema(((operator_object *)self)->op);
    PyObject *names = PyTuple_New((Py_ssize_t)schema->count);
    for (size_t i = 0; names && i < schema->count; i++) {
        PyObject *name = PyUnicode_FromString(schema->parameters[i].name);
        if (!name) {
            Py_CLEAR(names);
        } else {
            PyTuple_SetItem(names, (Py_ssize_t)i, name);
        }
    }
    return names;
}

static PyObject *operator_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<operator %s>",
                                opscope_operator_name(((operator_object *)self)->op));
}

static void operator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyGetSetDef operator_attributes[] = {
    {"name", get_name, NULL, "Its name in ranges: \"core::add\".", NULL},
    {"schema", get_schema, NULL, "Parameters and outputs, in PyTorch's notation.", NULL},
    {"doc", get_doc, NULL, "A description of what it computes.", NULL},
    {"samples", get_samples, NULL, "Arguments of sample calls, one call a line.", NULL},
    {"parameters", get_parameters, NULL, "The names of its parameters.", NULL},
    {"is_differentiable", get_is_differentiable, NULL, "Whether it is differentiable.", NULL},
    {"node_name", get_node_name, NULL,
     "The name of the ranges of its nodes in backward: \"core::AddBackward\"; None where a call leaves none.",
     NULL},
    {"is_composite", get_is_composite, NULL,
     "Whether it calls other operators, whose ranges are inside its own.", NULL},
    {"takes_numbers", get_takes_numbers, NULL, "Whether it accepts a number in place of a tensor.",
     NULL},
    {"is_view", get_is_view, NULL, "Whether its output shares the storage of its first argument.",
     NULL},
    {0},
};

static PyType_Slot operator_slots[] = {
    {Py_tp_doc, "An entry of the operator table."},
    {Py_tp_repr, (void *)operator_repr},
    {Py_tp_call, (void *)call_operator},
    {Py_tp_dealloc, (void *)operator_dealloc},
    {Py_tp_getset, operator_attributes},
    {0, NULL},
};

static PyType_Spec operator_type_spec = {
    .name = "opscope.tensor.Operator",
    .basicsize = sizeof(operator_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = operator_slots,
};

/* ---- docstrings --------------------------------------------------------------------------------- */

static PyObject *default_text(const struct opscope__parameter *parameter)
{
    const opscope_argument *value = &parameter->otherwise;
    switch (value->kind) {
    case OPSCOPE_ARGUMENT_INT:
        if (parameter->type == OPSCOPE__TYPE_BOOL) {
            return PyUnicode_FromString(value->as.integer ? "True" : "False");
        }
        return PyUnicode_FromFormat("%lld", (long long)value->as.integer);
    case OPSCOPE_ARGUMENT_FLOAT: {
        PyObject *number = PyFloat_FromDouble(value->as.real);
        PyObject *text = number ? PyObject_Repr(number) : NULL;
        Py_XDECREF(number);
        return text;
    }
    case OPSCOPE_ARGUMENT_INTS: {
        PyObject *list = PyTuple_New((Py_ssize_t)value->count);
        for (uint32_t i = 0; list && i < value->count; i++) {
            PyTuple_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(value->as.integers[i]));
        }
        PyObject *text = list ? PyObject_Repr(list) : NULL;
        Py_XDECREF(list);
        return text;
    }
    case OPSCOPE_ARGUMENT_TEXT:
        return PyUnicode_FromFormat("'%s'", value->as.text);
    default:
        return PyUnicode_FromString("None");
    }
}

/* Appends `more` to *text; takes the reference to `more`. */
static int append(PyObject **text, PyObject *more)
{
    PyObject *joined = more && *text ? PyUnicode_Concat(*text, more) : NULL;
    Py_XDECREF(more);
    Py_XDECREF(*text);
    *text = joined;
    return joined ? 0 : -1;
}

/* The form that inspect.signature reads: "add(self, other, *, alpha=1)\n--\n\n...". */
static char *make_doc(const opscope_operator *op, bool is_method)
{
    const struct opscope__schema *schema = opscope__operator_schema(op);
    const struct opscope__operator_spec *spec = opscope__operator_spec(op);
    PyObject *text = PyUnicode_FromFormat("%s(", short_name(op));
    for (size_t i = 0; i < schema->count; i++) {
        const struct opscope__parameter *parameter = &schema->parameters[i];
        if (i == schema->positional_count) {
            append(&text, PyUnicode_FromString(i ? ", *" : "*"));
        }
        append(&text, PyUnicode_FromFormat("%s%s%s", i ? ", " : "", i == 0 && is_method ? "$" : "",
                                           parameter->name));
        if (parameter->has_default) {
            append(&text, PyUnicode_FromString("="));
            append(&text, default_text(parameter));
        }
    }
    append(&text,
           PyUnicode_FromFormat(")\n--\n\n%s\n\n%s", spec->doc ? spec->doc : "", spec->schema));
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    char *copy = utf8 ? strdup(utf8) : NULL; /* as long-lived as the operator */
    Py_XDECREF(text);
    return copy;
}

/* ---- creation -------------------------------------------------------------------------------- */

static PyMethodDef *make_def(const opscope_operator *op, method function, bool is_method)
{
    PyMethodDef *def = PyMem_Malloc(sizeof *def); /* as long-lived as the function */
    if (def) {
        *def = (PyMethodDef){short_name(op), (PyCFunction)(void (*)(void))function,
                             METH_FASTCALL | METH_KEYWORDS, make_doc(op, is_method)};
    }
    return def;
}

static int add_to(PyObject *target, const char *name, PyObject *object)
{
    int result = object ? PyObject_SetAttrString(target, name, object) : -1;
    Py_XDECREF(object);
    return result;
}

static int add_method(const opscope_operator *op)
{
    if (method_count == METHOD_LIMIT) {
        PyErr_SetString(PyExc_SystemError, "more operators than operators.c has methods for");
        return -1;
    }
    PyMethodDef *def = make_def(op, METHOD_FUNCTIONS[method_count], true);
    if (!def) {
        PyErr_NoMemory();
        return -1;
    }
    method_operators[method_count++] = op;
    return add_to((PyObject *)opscope__py_tensor_type, def->ml_name,
                  PyDescr_NewMethod(opscope__py_tensor_type, def));
}

static operator_object *make_entry(const opscope_operator *op)
{
    operator_object *entry = PyObject_New(operator_object, operator_type);
    if (entry) {
        entry->op = op;
    }
    return entry;
}

static int add_function(const opscope_operator *op, PyObject *functions, PyObject *table)
{
    operator_object *entry = make_entry(op);
    if (!entry) {
        return -1;
    }
    PyMethodDef *def = make_def(op, call_function, false);
    PyObject *module_name = PyUnicode_FromString("opscope.tensor");
    PyObject *function =
        def && module_name ? PyCFunction_NewEx(def, (PyObject *)entry, module_name) : NULL;
    int result = -1;
    if (function) {
        result = PyDict_SetItemString(functions, def->ml_name, function);
        result |= PyDict_SetItemString(table, opscope_operator_name(op), (PyObject *)entry);
    }
    Py_XDECREF(function);
    Py_XDECREF(module_name);
    Py_DECREF(entry);
    return result;
}

int opscope__py_add_operators(PyObject *module)
{
    operator_type = (PyTypeObject *)PyType_FromSpec(&operator_type_spec);
    PyObject *functions = PyDict_New();
    PyObject *table = PyDict_New();
    int result = operator_type && functions && table ? 0 : -1;
    for (size_t i = 0; result == 0 && i < opscope_operator_count(); i++) {
        const opscope_operator *op = opscope_operator_at(i);
        const struct opscope__schema *schema = opscope__operator_schema(op);
        result = opscope__py_prepare_results(op);
        if (result == 0) {
            result = add_function(op, functions, table);
        }
        if (result == 0 && schema->positional_count > 0 &&
            schema->parameters[0].type == OPSCOPE__TYPE_TENSOR) {
            result = add_method(op);
        }
    }
    if (result == 0) {
        result = PyModule_AddObjectRef(module, "functions", functions) |
                 PyModule_AddObjectRef(module, "operators", table) |
                 PyModule_AddObjectRef(module, "Operator", (PyObject *)operator_type);
    }
    Py_XDECREF(functions);
    operator_table = table;
    return result;
}

PyObject *opscope__py_operators(const opscope_operator *const *operators, size_t count)
{
    PyObject *found = PyDict_New();
    for (size_t i = 0; found && i < count; i++) {
        const char *name = opscope_operator_name(operators[i]);
        PyObject *entry = PyDict_GetItemString(operator_table, name); /* borrowed */
        if (entry) {
            Py_INCREF(entry);
        } else if (opscope__py_prepare_results(operators[i]) == 0) {
            entry = (PyObject *)make_entry(operators[i]);
        }
        if (!entry || PyDict_SetItemString(operator_table, name, entry) < 0 ||
            PyDict_SetItemString(found, name, entry) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(entry);
    }
    return found;
}
