/* outer.c -- outer ranges around methods that are written in Python.
 *
 * A function in Python would add a frame, which tracebacks and the locations of warnings show. So
 * an object of a type in C takes the place of the method. It forwards all its attributes to the
 * method and has its class, so that inspect.isfunction(), inspect.signature() and the like give
 * what they gave; it is pickled by its name, as a function is.
 */
#include "bridges/outer.h"

#include <stddef.h>
#include <stdio.h>
#include <structmember.h>
#include <string.h>

#include "bridges/python_call.h"
#include "bridges/python_op.h"
#include "opscope/range_inline.h"

enum { NAME_BYTES = 256 };

/* The GIL guards all of these. They live as long as their class or longer, in a list. */
struct outer {
    PyObject head;
    PyObject *weak_references;
    PyObject *function; /* owned, as are the others */
    PyObject *type;     /* that has the method; NULL: detached */
    PyObject *method;   /* its name */
    PyObject *ops;      /* a dict from names of classes to operators; NULL: `op` is that of all */
    const opscope_op *op;
    PyObject *last_class; /* a weak reference to that of the last call's object; NULL: none */
    const opscope_op *last_op;
    struct outer *next;
    uint32_t owner;
    char name[NAME_BYTES];
};

static struct outer *list;

/* ---- calls ---------------------------------------------------------------------------------- */

/* The innermost method in a range on this thread. Compared only. */
static OPSCOPE__THREAD_LOCAL struct {
    PyObject *object;
    PyObject *method;
} innermost;

static const opscope_op *intern(const struct outer *outer, PyObject *class_name)
{
    const char *class_text = PyUnicode_AsUTF8AndSize(class_name, NULL);
    const char *method = PyUnicode_AsUTF8AndSize(outer->method, NULL);
    char text[2 * NAME_BYTES];
    snprintf(text, sizeof text, "%s%s.%s", outer->name, class_text != NULL ? class_text : "?",
             method != NULL ? method : "?");
    PyErr_Clear();
    return opscope__python_outer_op(text);
}

/* The operator of the objects of a class; NULL: its name is no text. */
static const opscope_op *op_of_class(const struct outer *outer, PyObject *type)
{
    PyObject *class_name = PyObject_GetAttrString(type, "__name__");
    const opscope_op *op = NULL;
    if (class_name != NULL && PyUnicode_Check(class_name)) {
        PyObject *known = PyDict_GetItemWithError(outer->ops, class_name);
        op = known != NULL ? PyLong_AsVoidPtr(known) : intern(outer, class_name);
        PyObject *number = known == NULL ? PyLong_FromVoidPtr((void *)(uintptr_t)op) : NULL;
        if (number != NULL) {
            (void)PyDict_SetItem(outer->ops, class_name, number);
        }
        Py_XDECREF(number);
    }
    Py_XDECREF(class_name);
    return op;
}

/* The operator for a call on `object`. */
static const opscope_op *op_of(struct outer *outer, PyObject *object)
{
    if (outer->ops == NULL || object == NULL) {
        return outer->op;
    }
    PyObject *type = (PyObject *)Py_TYPE(object);
    if (outer->last_class != NULL && PyWeakref_GetObject(outer->last_class) == type) {
        return outer->last_op;
    }
    const opscope_op *op = op_of_class(outer, type);
    PyErr_Clear();
    if (op == NULL) {
        return outer->op;
    }
    PyObject *before = outer->last_class;
    outer->last_class = PyWeakref_NewRef(type, NULL);
    outer->last_op = op;
    Py_XDECREF(before);
    PyErr_Clear();
    return op;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *names)
{
    static const opscope_op any = {.scope = OPSCOPE_USER_SCOPE};
    struct outer *outer = (struct outer *)(void *)self;
    PyObject *object = PyTuple_Size(args) > 0 ? PyTuple_GetItem(args, 0) : NULL;
    const bool is_nested = innermost.method == outer->method && innermost.object == object;
    if (outer->type == NULL || is_nested || opscope__range_is_skipped(&any)) {
        return PyObject_Call(outer->function, args, names);
    }
    struct opscope__python_arguments arguments = {.tuple = args, .keywords = names};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&arguments);
    opscope_range range;
    opscope__range_open_slow(&range, op_of(outer, object), &info);
    if (!opscope__python_range_fired(&range)) {
        return PyObject_Call(outer->function, args, names);
    }
    const __typeof__(innermost) around = innermost;
    innermost.object = object;
    innermost.method = outer->method;
    PyObject *result = PyObject_Call(outer->function, args, names);
    innermost.object = around.object;
    innermost.method = around.method;
    return opscope__python_range_close(&range, result);
}

/* ---- the object, which looks like the method -------------------------------------------------- */

static PyObject *bind(PyObject *self, PyObject *object, PyObject *type)
{
    static PyObject *method_type; /* types.MethodType */
    (void)type;
    if (object == NULL) {
        Py_INCREF(self);
        return self;
    }
    if (method_type == NULL) {
        PyObject *types = PyImport_ImportModule("types");
        method_type = types != NULL ? PyObject_GetAttrString(types, "MethodType") : NULL;
        Py_XDECREF(types);
    }
    return method_type != NULL ? PyObject_CallFunctionObjArgs(method_type, self, object, NULL)
                               : NULL;
}

static PyObject *get(PyObject *self, PyObject *name)
{
    if (PyUnicode_CompareWithASCIIString(name, "__class__") == 0 ||
        PyUnicode_CompareWithASCIIString(name, "__reduce__") == 0 ||
        PyUnicode_CompareWithASCIIString(name, "__reduce_ex__") == 0) {
        return PyObject_GenericGetAttr(self, name);
    }
    return PyObject_GetAttr(((struct outer *)(void *)self)->function, name);
}

static int set(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((struct outer *)(void *)self)->function, name, value);
}

static PyObject *represent(PyObject *self)
{
    return PyObject_Repr(((struct outer *)(void *)self)->function);
}

static PyObject *get_class(PyObject *self, void *unused)
{
    (void)unused;
    PyObject *type = (PyObject *)Py_TYPE(((struct outer *)(void *)self)->function);
    Py_INCREF(type);
    return type;
}

/* The function's attribute for object.__getattribute__(), with which pydoc reads docstrings: it
 * bypasses get(). */
static PyObject *get_of_function(PyObject *self, void *name)
{
    return PyObject_GetAttrString(((struct outer *)(void *)self)->function, name);
}

/* The same for an attribute that the type has too, or must not seem to have. */
struct forwarded {
    PyObject head;
    const char *name;
    PyObject *type;  /* whose objects have it; borrowed, lives for ever */
    PyObject *value; /* of the type itself; NULL: none */
};

static PyObject *get_forwarded(PyObject *self, PyObject *object, PyObject *type)
{
    const struct forwarded *forwarded = (struct forwarded *)(void *)self;
    (void)type;
    if (object == NULL) {
        if (forwarded->value == NULL) {
            PyErr_SetString(PyExc_AttributeError, forwarded->name);
        }
        Py_XINCREF(forwarded->value);
        return forwarded->value;
    }
    if ((PyObject *)Py_TYPE(object) != forwarded->type) {
        PyErr_SetString(PyExc_TypeError, "no method in an outer range");
        return NULL;
    }
    return get_of_function(object, (void *)(uintptr_t)forwarded->name);
}

/* False with an exception set. */
static bool forward(PyObject *type, const char *name, PyObject *value)
{
    static PyType_Slot slots[] = {{Py_tp_descr_get, get_forwarded}, {0, NULL}};
    static PyType_Spec spec = {.name = "opscope._native.forwarded",
                               .basicsize = (int)sizeof(struct forwarded),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    static PyObject *made_type;
    if (made_type == NULL && (made_type = PyType_FromSpec(&spec)) == NULL) {
        return false;
    }
    struct forwarded *made = (void *)PyType_GenericAlloc((PyTypeObject *)(void *)made_type, 0);
    if (made == NULL) {
        return false;
    }
    made->name = name;
    made->type = type;
    made->value = value;
    const bool is_set = PyObject_SetAttrString(type, name, (PyObject *)(void *)made) == 0;
    Py_DECREF((PyObject *)(void *)made);
    return is_set;
}

/* pickle and copy know functions by their exact type and ask every other object. A text is the name
 * of a global: what pickle makes of a function. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(((struct outer *)(void *)self)->function, "__qualname__");
}

static PyObject *outer_type(void)
{
    static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, NULL},
                                    {"__reduce_ex__", reduce, METH_O, NULL},
                                    {NULL, NULL, 0, NULL}};
    static PyGetSetDef members[] = {
        {"__class__", get_class, NULL, NULL, NULL},
        {"__name__", get_of_function, NULL, NULL, "__name__"},
        {"__qualname__", get_of_function, NULL, NULL, "__qualname__"},
        {"__dict__", get_of_function, NULL, NULL, "__dict__"},
        {"__code__", get_of_function, NULL, NULL, "__code__"},
        {"__defaults__", get_of_function, NULL, NULL, "__defaults__"},
        {"__kwdefaults__", get_of_function, NULL, NULL, "__kwdefaults__"},
        {"__closure__", get_of_function, NULL, NULL, "__closure__"},
        {"__globals__", get_of_function, NULL, NULL, "__globals__"},
        {"__builtins__", get_of_function, NULL, NULL, "__builtins__"},
        {NULL, NULL, NULL, NULL, NULL}};
    static PyMemberDef offsets[] = {
        {"__weaklistoffset__", T_PYSSIZET, (Py_ssize_t)offsetof(struct outer, weak_references),
         READONLY, NULL},
        {NULL, 0, 0, 0, NULL}};
    static PyType_Slot slots[] = {
        {Py_tp_call, call},      {Py_tp_descr_get, bind},  {Py_tp_getattro, get},
        {Py_tp_setattro, set},   {Py_tp_repr, represent},  {Py_tp_methods, methods},
        {Py_tp_getset, members}, {Py_tp_members, offsets}, {0, NULL}};
    /* The interpreter calls a method descriptor with the object as an argument more, and makes no
     * bound method for the call. */
    static PyType_Spec spec = {.name = "opscope._native.outer",
                               .basicsize = (int)sizeof(struct outer),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION |
                                        Py_TPFLAGS_METHOD_DESCRIPTOR,
                               .slots = slots};
    static PyObject *type;
    if (type == NULL) {
        PyObject *made = PyType_FromSpec(&spec);
        if (made != NULL && forward(made, "__doc__", Py_None) &&
            forward(made, "__annotations__", NULL) && forward(made, "__wrapped__", NULL)) {
            type = made;
        }
    }
    return type;
}

/* ---- attach and detach ---------------------------------------------------------------------- */

/* Borrowed from the type; NULL: it has none of that name itself. */
static PyObject *own_attribute(PyObject *type, PyObject *name)
{
    PyObject *attributes = PyObject_GetAttrString(type, "__dict__");
    PyObject *found = attributes != NULL ? PyObject_GetItem(attributes, name) : NULL;
    Py_XDECREF(attributes);
    Py_XDECREF(found);
    PyErr_Clear();
    return found;
}

static bool is_function(PyObject *object)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    const bool is_one = name != NULL && PyUnicode_CompareWithASCIIString(name, "function") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return is_one;
}

static struct outer *make(PyObject *function, PyObject *type, PyObject *method, const char *name)
{
    PyTypeObject *made_type = (PyTypeObject *)(void *)outer_type();
    struct outer *outer = made_type != NULL ? (void *)PyType_GenericAlloc(made_type, 0) : NULL;
    if (outer == NULL) {
        return NULL;
    }
    const size_t length = strlen(name);
    const bool by_class = length > 1 && name[length - 1] == ':';
    snprintf(outer->name, sizeof outer->name, "%s", name);
    Py_INCREF(function);
    Py_INCREF(type);
    Py_INCREF(method);
    outer->function = function;
    outer->type = type;
    outer->method = method;
    outer->ops = by_class ? PyDict_New() : NULL;
    outer->op = by_class ? opscope_op_other() : opscope__python_outer_op(name);
    return outer;
}

int opscope__outer_attach(uint32_t owner, PyObject *type, const char *method, const char *name)
{
    PyObject *interned = PyUnicode_InternFromString(method);
    PyObject *function = interned != NULL ? own_attribute(type, interned) : NULL;
    if (function != NULL && (PyObject *)Py_TYPE(function) == outer_type()) {
        Py_XDECREF(interned);
        return OPSCOPE_ERR_BUSY;
    }
    if (function == NULL || !is_function(function) || strlen(name) >= NAME_BYTES) {
        Py_XDECREF(interned);
        return OPSCOPE_ERR_INVALID;
    }
    struct outer *outer = make(function, type, interned, name);
    const bool is_in =
        outer != NULL && PyObject_SetAttr(type, interned, (PyObject *)(void *)outer) == 0;
    Py_DECREF(interned);
    PyErr_Clear();
    if (!is_in) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    outer->owner = owner;
    outer->next = list;
    list = outer; /* with the reference of its making */
    return OPSCOPE_OK;
}

void opscope__outer_detach(uint32_t owner)
{
    for (struct outer *outer = list; outer != NULL; outer = outer->next) {
        if (outer->owner == owner && outer->type != NULL) {
            PyObject *type = outer->type;
            if (own_attribute(type, outer->method) == (PyObject *)(void *)outer) {
                (void)PyObject_SetAttr(type, outer->method, outer->function);
            }
            PyErr_Clear();
            outer->type = NULL;
            Py_DECREF(type);
        }
    }
}
