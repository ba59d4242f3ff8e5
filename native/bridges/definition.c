/* definition.c -- finds definitions, and verifies every assumption. Writes none.
 *
 * The structs mirror the beginning of CPython's objects, 3.10 to 3.14 with the GIL, which the
 * limited API does not have. What a mirror says of an object is used only if it agrees with what
 * the object says itself, and if the memory grants the access:
 *
 * - a builtin: its function and its flags equal those that the limited API returns;
 * - a function of Cython's, whose struct begins with that of a builtin: its name equals the
 *   attribute `__name__`, its function lies in executable memory, and its flags are those of a
 *   calling convention. builtin.c then tries it with a call;
 * - a method of a type: the descriptor of a type made here, whose definition is known, has it where
 *   the mirror says, and the name equals `__name__`.
 */
#include "bridges/definition.h"

#include <string.h>
#include <sys/mman.h>

/* PyCFunctionObject. */
struct builtin_layout {
    PyObject head;
    PyMethodDef *definition;
    PyObject *self;
};

/* PyMethodDescrObject. */
struct descriptor_layout {
    PyObject head;
    PyTypeObject *type;
    PyObject *name;
    PyObject *qualified_name;
    PyMethodDef *definition;
};

enum kind { OTHER, BUILTIN, CYTHON, DESCRIPTOR };

/* Whether the object calls itself as the definition does. */
static bool has_same_name(PyObject *object, const PyMethodDef *definition,
                          const struct opscope__pages *pages)
{
    PyObject *name = PyObject_GetAttrString(object, "__name__");
    Py_ssize_t bytes = 0;
    const char *text =
        name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, &bytes) : NULL;
    const size_t with_end = (size_t)bytes + 1;
    const bool is_same = text != NULL &&
                         opscope__pages_grant(pages, definition->ml_name, with_end, PROT_READ) &&
                         memcmp(definition->ml_name, text, with_end) == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return is_same;
}

/* Compilers of Cython share its types in a module of their own, so that only their names tell. */
static bool is_cython(PyObject *object)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    const bool is_one =
        name != NULL && (PyUnicode_CompareWithASCIIString(name, "cython_function_or_method") == 0 ||
                         PyUnicode_CompareWithASCIIString(name, "fused_cython_function") == 0);
    PyObject *size =
        is_one ? PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__basicsize__") : NULL;
    const bool has_room =
        size != NULL && PyLong_AsSsize_t(size) >= (Py_ssize_t)sizeof(struct builtin_layout);
    Py_XDECREF(size);
    Py_XDECREF(name);
    PyErr_Clear();
    return has_room;
}

static PyObject *nothing(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    Py_INCREF(Py_None);
    return Py_None;
}

/* Whether this interpreter's descriptors have the layout of the mirror. The first call tests it
 * with a descriptor of a type made for this test. */
static bool descriptors_are_known(void)
{
    static PyMethodDef methods[] = {{"nothing", nothing, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, NULL}};
    static PyType_Spec spec = {.name = "opscope._native.with_method",
                               .basicsize = (int)sizeof(PyObject),
                               .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               .slots = slots};
    static enum { UNKNOWN, KNOWN, DIFFERENT } answer; /* under the GIL */
    if (answer == UNKNOWN) {
        PyObject *type = PyType_FromSpec(&spec);
        PyObject *method = type != NULL ? PyObject_GetAttrString(type, "nothing") : NULL;
        const struct descriptor_layout *layout = (const void *)method;
        answer = method != NULL && Py_IS_TYPE(method, &PyMethodDescr_Type) &&
                         layout->type == (PyTypeObject *)(void *)type &&
                         layout->definition == &methods[0]
                     ? KNOWN
                     : DIFFERENT;
        Py_XDECREF(method);
        Py_XDECREF(type);
        PyErr_Clear();
    }
    return answer == KNOWN;
}

static enum kind kind_of(PyObject *object)
{
    if (PyCFunction_Check(object)) {
        return BUILTIN;
    }
    if (Py_IS_TYPE(object, &PyMethodDescr_Type)) {
        return descriptors_are_known() ? DESCRIPTOR : OTHER;
    }
    return is_cython(object) ? CYTHON : OTHER;
}

PyMethodDef *opscope__definition(PyObject *object, const struct opscope__pages *pages,
                                 bool *is_bound)
{
    const enum kind kind = kind_of(object);
    if (kind == OTHER) {
        return NULL;
    }
    PyMethodDef *definition = kind == DESCRIPTOR
                                  ? ((struct descriptor_layout *)(void *)object)->definition
                                  : ((struct builtin_layout *)(void *)object)->definition;
    if (!opscope__pages_grant(pages, definition, sizeof *definition, PROT_READ | PROT_WRITE) ||
        !opscope__pages_grant(pages, (void *)definition->ml_meth, 1, PROT_EXEC) ||
        (kind == BUILTIN && (definition->ml_meth != PyCFunction_GetFunction(object) ||
                             definition->ml_flags != PyCFunction_GetFlags(object))) ||
        !has_same_name(object, definition, pages)) {
        return NULL;
    }
    *is_bound = kind != DESCRIPTOR;
    return definition;
}
