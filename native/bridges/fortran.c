/* fortran.c -- calls of functions that f2py has wrapped.
 *
 * CPython reads tp_call from an object's type at each call. All functions of one extension module
 * have one type, so one pointer catches them all. An operator is interned at the first recorded
 * call of its function, because such a module has hundreds of functions and a program calls few.
 */
#include "bridges/fortran.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bridges/library.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"

enum { TYPE_LIMIT = 32, TABLE_LOG2 = 10, TABLE_SIZE = 1 << TABLE_LOG2, PREFIX_BYTES = 64 };

/* PyTypeObject up to tp_call. */
struct type_layout {
    PyVarObject head;
    const char *name;
    Py_ssize_t basic_size;
    Py_ssize_t item_size;
    destructor dealloc;
    Py_ssize_t vectorcall_offset;
    void *getattr;
    void *setattr;
    void *as_async;
    reprfunc repr;
    void *as_number;
    void *as_sequence;
    void *as_mapping;
    hashfunc hash;
    ternaryfunc call;
};

/* The GIL guards all of this. Entries stay for ever, so that a call in flight survives a detach. */
struct module {
    PyTypeObject *type; /* owned, as are its functions below; NULL: free */
    ternaryfunc original;
    uint32_t owner;
    char prefix[PREFIX_BYTES];
};

static struct module modules[TYPE_LIMIT];

static struct function {
    PyObject *object; /* the key; owned */
    const opscope_op *op;
} table[TABLE_SIZE];
static size_t table_count;

/* ---- hot path ------------------------------------------------------------------------------- */

static struct module *module_of(PyObject *self)
{
    struct module *module = modules;
    while (module->type != Py_TYPE(self)) {
        module++; /* the trampoline runs only for types that are in the list */
    }
    return module;
}

/* The operator of a function that the table has no room for is that of its module. */
static const opscope_op *intern(PyObject *self, const struct module *module)
{
    static const char kind[] = "function "; /* f2py puts it before a function's name */
    char text[PREFIX_BYTES + 128];
    PyObject *name = PyObject_GetAttrString(self, "__name__");
    const char *own =
        name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (own != NULL && strncmp(own, kind, sizeof kind - 1) == 0) {
        own += sizeof kind - 1;
    }
    snprintf(text, sizeof text, "%s%s", module->prefix, own != NULL ? own : "call");
    Py_XDECREF(name);
    PyErr_Clear();
    return opscope__python_op(text);
}

static const opscope_op *op_of(PyObject *self, const struct module *module)
{
    const uint64_t hash = ((uint64_t)(uintptr_t)self >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    struct function *found = &table[hash >> (64 - TABLE_LOG2)];
    while (found->object != self && found->object != NULL) {
        found = found == &table[TABLE_SIZE - 1] ? table : found + 1;
    }
    if (found->object == self) {
        return found->op;
    }
    const opscope_op *op = intern(self, module);
    if (table_count < TABLE_SIZE * 3 / 4) {
        table_count++;
        Py_INCREF(self);
        *found = (struct function){self, op};
    }
    return op;
}

static PyObject *trampoline(PyObject *self, PyObject *args, PyObject *names)
{
    const struct module *module = module_of(self);
    const ternaryfunc original = module->original;
    if (opscope__python_range_is_skipped()) {
        return original(self, args, names);
    }
    struct opscope__python_arguments call = {.tuple = args, .keywords = names};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, op_of(self, module), &info);
    if (!opscope__python_range_fired(&range)) {
        return opscope__python_probe_arrives(module) ? Py_NewRef(Py_None)
                                                     : original(self, args, names);
    }
    return opscope__python_range_close(&range, original(self, args, names));
}

/* ---- attach and detach ---------------------------------------------------------------------- */

static bool call_arrives(PyObject *object, const struct module *module)
{
    opscope__python_probe_begin(module);
    PyObject *result = PyObject_CallFunctionObjArgs(object, NULL);
    const bool arrived = opscope__python_probe_end() && result == Py_None;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

bool opscope__is_fortran(PyObject *object)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    const bool is_one = name != NULL && PyUnicode_CompareWithASCIIString(name, "fortran") == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return is_one;
}

static struct type_layout *checked_type(PyTypeObject *type, const struct opscope__pages *pages)
{
    struct type_layout *layout = (void *)type;
    const bool is_known =
        opscope__pages_grant(pages, layout, sizeof *layout, PROT_READ | PROT_WRITE) &&
        layout->dealloc == (destructor)PyType_GetSlot(type, Py_tp_dealloc) &&
        layout->repr == (reprfunc)PyType_GetSlot(type, Py_tp_repr) &&
        layout->call == (ternaryfunc)PyType_GetSlot(type, Py_tp_call) && layout->call != NULL;
    return is_known ? layout : NULL;
}

static struct module *find_module(const PyTypeObject *type)
{
    for (struct module *module = modules; module < modules + TYPE_LIMIT; module++) {
        if (module->type == type || module->type == NULL) {
            return module;
        }
    }
    return NULL;
}

int opscope__fortran_attach(PyObject *object, const char *prefix, uint32_t owner,
                            const char *library, const struct opscope__pages *pages)
{
    PyTypeObject *type = Py_TYPE(object);
    struct type_layout *layout = checked_type(type, pages);
    if (layout == NULL || strlen(prefix) >= PREFIX_BYTES) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (layout->call == trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    if (!opscope__is_in_library((void *)layout->call, library)) {
        return OPSCOPE_ERR_INVALID;
    }
    struct module *module = find_module(type);
    if (module == NULL) {
        return OPSCOPE_ERR_FULL;
    }
    const bool is_new = module->type == NULL;
    module->type = type;
    module->original = layout->call;
    module->owner = owner;
    strcpy(module->prefix, prefix);
    layout->call = trampoline;
    if (!call_arrives(object, module)) {
        layout->call = module->original;
        module->type = is_new ? NULL : type;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (is_new) {
        Py_INCREF((PyObject *)type);
    }
    return OPSCOPE_OK;
}

void opscope__fortran_detach(uint32_t owner)
{
    for (struct module *module = modules; module < modules + TYPE_LIMIT; module++) {
        struct type_layout *layout = (void *)module->type;
        if (layout != NULL && module->owner == owner && layout->call == trampoline) {
            layout->call = module->original;
        }
    }
}
