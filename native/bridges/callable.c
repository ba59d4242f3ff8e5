/* callable.c -- calls of objects through tp_call of their type.
 *
 * CPython reads tp_call from an object's type at each call, so one pointer catches all objects of
 * a type. Types whose objects have a pointer of their own for calls by vector lose the flag that
 * says so while attached: CPython then calls them through tp_call. An operator is interned at the
 * first recorded call of its object, because such a type has hundreds of objects and a program
 * calls few.
 */
#include "bridges/callable.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bridges/library.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"

enum { TYPE_LIMIT = 32, TABLE_LOG2 = 10, TABLE_SIZE = 1 << TABLE_LOG2, PREFIX_BYTES = 64 };

static const unsigned long HAVE_VECTORCALL = 1ul << 11; /* Py_TPFLAGS_HAVE_VECTORCALL */

/* PyTypeObject up to tp_flags. */
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
    reprfunc str;
    void *getattro;
    void *setattro;
    void *as_buffer;
    unsigned long flags;
};

/* The GIL guards all of this. Entries stay for ever, so that a call in flight survives a detach. */
struct family {
    PyTypeObject *type; /* owned, as are its objects below; NULL: free */
    ternaryfunc original;
    unsigned long cleared; /* flags that were cleared */
    PyObject *ops;         /* a dict from names of objects to operators; NULL: the table has them */
    uint32_t owner;
    char prefix[PREFIX_BYTES];
};

static struct family families[TYPE_LIMIT];

static struct object {
    PyObject *object; /* the key; owned */
    const opscope_op *op;
} table[TABLE_SIZE];
static size_t table_count;

/* ---- hot path ------------------------------------------------------------------------------- */

/* A type derived from one in the list may have inherited its tp_call. NULL: it is none of those. */
static struct family *family_of_base(PyObject *self)
{
    for (struct family *family = families; family < families + TYPE_LIMIT; family++) {
        if (family->type != NULL && PyType_IsSubtype(Py_TYPE(self), family->type)) {
            return family;
        }
    }
    return NULL;
}

static struct family *family_of(PyObject *self)
{
    for (struct family *family = families; family < families + TYPE_LIMIT; family++) {
        if (family->type == Py_TYPE(self)) {
            return family;
        }
    }
    return family_of_base(self);
}

/* The operator of an object that the table has no room for is that of its type. */
static const opscope_op *intern(PyObject *self, const struct family *family)
{
    static const char kind[] = "function "; /* f2py puts it before a function's name */
    char text[PREFIX_BYTES + 128];
    PyObject *name = PyObject_GetAttrString(self, "__name__");
    const char *own =
        name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (own != NULL && strncmp(own, kind, sizeof kind - 1) == 0) {
        own += sizeof kind - 1;
    }
    snprintf(text, sizeof text, "%s%s", family->prefix, own != NULL ? own : "call");
    Py_XDECREF(name);
    PyErr_Clear();
    return opscope__python_op(text);
}

static const opscope_op *op_of(PyObject *self, const struct family *family)
{
    const uint64_t hash = ((uint64_t)(uintptr_t)self >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    struct object *found = &table[hash >> (64 - TABLE_LOG2)];
    while (found->object != self && found->object != NULL) {
        found = found == &table[TABLE_SIZE - 1] ? table : found + 1;
    }
    if (found->object == self) {
        return found->op;
    }
    const opscope_op *op = intern(self, family);
    if (table_count < TABLE_SIZE * 3 / 4) {
        table_count++;
        Py_INCREF(self);
        *found = (struct object){self, op};
    }
    return op;
}

/* Programs make and drop such objects, so that they are not owned. */
static const opscope_op *op_of_name(PyObject *self, const struct family *family)
{
    PyObject *name = PyObject_GetAttrString(self, "__name__");
    PyObject *known =
        name != NULL && PyUnicode_Check(name) ? PyDict_GetItemWithError(family->ops, name) : NULL;
    const opscope_op *op = known != NULL ? PyLong_AsVoidPtr(known) : intern(self, family);
    if (known == NULL && name != NULL && PyUnicode_Check(name)) {
        PyObject *number = PyLong_FromVoidPtr((void *)(uintptr_t)op);
        if (number != NULL) {
            (void)PyDict_SetItem(family->ops, name, number);
        }
        Py_XDECREF(number);
    }
    Py_XDECREF(name);
    PyErr_Clear();
    return op;
}

static PyObject *trampoline(PyObject *self, PyObject *args, PyObject *names)
{
    const struct family *family = family_of(self);
    if (family == NULL) {
        /* Only types in the list have this function, and those derived from them. */
        PyErr_SetString(PyExc_SystemError, "opscope: a call of an unknown type");
        return NULL;
    }
    const ternaryfunc original = family->original;
    if (opscope__python_range_is_skipped()) {
        return original(self, args, names);
    }
    struct opscope__python_arguments call = {.tuple = args, .keywords = names};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(
        &range, family->ops != NULL ? op_of_name(self, family) : op_of(self, family), &info);
    if (!opscope__python_range_fired(&range)) {
        return opscope__python_probe_arrives(family) ? Py_NewRef(Py_None)
                                                     : original(self, args, names);
    }
    return opscope__python_range_close(&range, original(self, args, names));
}

/* ---- attach and detach ---------------------------------------------------------------------- */

/* Types whose objects are functions: of f2py, ctypes, Numba, JAX and numexpr. */
static const struct {
    const char *name;
    bool owns; /* they live as long as their library */
} kinds[] = {{"fortran", true},
             {"_FuncPtr", true},
             {"CPUDispatcher", false},
             {"PjitFunction", false},
             {"NumExpr", false}};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

static bool call_arrives(PyObject *object, const struct family *family)
{
    opscope__python_probe_begin(family);
    PyObject *result = PyObject_CallFunctionObjArgs(object, NULL);
    const bool arrived = opscope__python_probe_end() && result == Py_None;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

/* The kind of the object's type; KIND_COUNT: none of those. */
static size_t kind_of(PyObject *object)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    size_t kind = 0;
    while (kind < KIND_COUNT &&
           (name == NULL || PyUnicode_CompareWithASCIIString(name, kinds[kind].name) != 0)) {
        kind++;
    }
    Py_XDECREF(name);
    PyErr_Clear();
    return kind;
}

bool opscope__is_callable(PyObject *object)
{
    return kind_of(object) != KIND_COUNT;
}

static struct type_layout *checked_type(PyTypeObject *type, const struct opscope__pages *pages)
{
    struct type_layout *layout = (void *)type;
    const bool is_known =
        opscope__pages_grant(pages, layout, sizeof *layout, PROT_READ | PROT_WRITE) &&
        layout->dealloc == (destructor)PyType_GetSlot(type, Py_tp_dealloc) &&
        layout->repr == (reprfunc)PyType_GetSlot(type, Py_tp_repr) &&
        layout->call == (ternaryfunc)PyType_GetSlot(type, Py_tp_call) && layout->call != NULL &&
        layout->flags == PyType_GetFlags(type);
    return is_known ? layout : NULL;
}

static struct family *find_family(const PyTypeObject *type)
{
    for (struct family *family = families; family < families + TYPE_LIMIT; family++) {
        if (family->type == type || family->type == NULL) {
            return family;
        }
    }
    return NULL;
}

int opscope__callable_attach(PyObject *object, const char *prefix, uint32_t owner,
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
    if (library != NULL && !opscope__is_in_library((void *)layout->call, library)) {
        return OPSCOPE_ERR_INVALID;
    }
    struct family *family = find_family(type);
    if (family == NULL) {
        return OPSCOPE_ERR_FULL;
    }
    const bool is_new = family->type == NULL;
    family->type = type;
    family->original = layout->call;
    family->owner = owner;
    strcpy(family->prefix, prefix);
    if (!kinds[kind_of(object)].owns && family->ops == NULL) {
        family->ops = PyDict_New();
        PyErr_Clear();
    }
    /* A call by vector would go past tp_call, which makes one of it. */
    family->cleared = layout->flags & HAVE_VECTORCALL;
    layout->flags &= ~family->cleared;
    layout->call = trampoline;
    if (!call_arrives(object, family)) {
        layout->call = family->original;
        layout->flags |= family->cleared;
        family->type = is_new ? NULL : type;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (is_new) {
        Py_INCREF((PyObject *)type);
    }
    return OPSCOPE_OK;
}

void opscope__callable_detach(uint32_t owner)
{
    for (struct family *family = families; family < families + TYPE_LIMIT; family++) {
        struct type_layout *layout = (void *)family->type;
        if (layout != NULL && family->owner == owner && layout->call == trampoline) {
            layout->call = family->original;
            layout->flags |= family->cleared;
        }
    }
}
