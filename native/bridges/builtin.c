/* builtin.c -- calls of functions and methods of extension modules.
 *
 * CPython and Cython read ml_meth from a function's definition at each call, and all bound copies
 * of a method share one definition, so replacing ml_meth catches every caller. The pointer carries
 * no data: each definition takes a slot with its own trampoline, from a pool for its calling
 * convention.
 */
#include "bridges/builtin.h"

#include "bridges/definition.h"
#include "bridges/library.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"

typedef PyObject *(*keywords_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* The GIL guards all slots. A slot stays with its definition for ever, so that a call in flight
 * survives a detach, and a later attach reuses it. */
struct slot {
    PyMethodDef *definition; /* NULL: free */
    PyCFunction original;
    const opscope_op *op;
    opscope__op_of_self op_of_self; /* NULL: the operator does not depend on the object */
    int index;                      /* for op_of_self */
    uint32_t owner;
    bool self_is_input;
};

#define ANY_FUNCTION(function) ((PyCFunction)(void (*)(void))(function))
#define ORIGINAL(slot, type) ((type)(void (*)(void))(slot)->original)

/* ---- hot path ------------------------------------------------------------------------------- */

static const opscope_op *op_of(const struct slot *slot, PyObject *self)
{
    const opscope_op *op = NULL;
    if (slot->op_of_self != NULL) {
        op = slot->op_of_self(self, slot->index, slot->definition->ml_name);
    }
    return op != NULL ? op : slot->op;
}

/* One per calling convention: ORIGINAL_CALL calls the original, the other arguments initialise an
 * opscope__python_arguments. */
#define CALL_SEEN(slot, self, ORIGINAL_CALL, ...)                                                  \
    do {                                                                                           \
        struct opscope__python_arguments call = {.self = (slot)->self_is_input ? (self) : NULL,    \
                                                 __VA_ARGS__};                                     \
        const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);                         \
        opscope_range range;                                                                       \
        opscope__range_open_slow(&range, op_of(slot, self), &info);                                \
        return opscope__python_range_close(&range, ORIGINAL_CALL);                                 \
    } while (0)

/* One copy for all trampolines of a convention. Its slot comes last, so that a trampoline only adds
 * an argument and jumps. */
#define SHARED __attribute__((noinline))

/* METH_VARARGS, METH_O and METH_NOARGS, which all pass one object or NULL. */
static SHARED PyObject *call_plain(PyObject *self, PyObject *arg, const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return slot->original(self, arg);
    }
    bool is_tuple = (slot->definition->ml_flags & METH_VARARGS) != 0;
    CALL_SEEN(slot, self, slot->original(self, arg), .tuple = is_tuple ? arg : NULL, .vector = &arg,
              .vector_count = !is_tuple && arg != NULL);
}

static SHARED PyObject *call_keywords(PyObject *self, PyObject *args, PyObject *names,
                                      const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, keywords_function)(self, args, names);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, keywords_function)(self, args, names), .tuple = args,
              .keywords = names);
}

static SHARED PyObject *call_fast(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                  const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, fast_function)(self, args, count);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, fast_function)(self, args, count), .vector = args,
              .vector_count = (size_t)count);
}

static SHARED PyObject *call_fast_keywords(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                           PyObject *names, const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, fast_keywords_function)(self, args, count, names);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, fast_keywords_function)(self, args, count, names),
              .vector = args, .vector_count = (size_t)count, .names = names);
}

/* ---- pools: trampolines for each calling convention ------------------------------------------ */

/* Nearly all of Cython's functions have the last convention. */
enum { POOL_SIZE = 512, FAST_KEYWORDS_SIZE = 2048 };

/* Hexadecimal numbers: 0x000 to 0x1ff, and on to 0x7ff. */
#define SIXTEEN(X, high)                                                                           \
    X(0x##high##0)                                                                                 \
    X(0x##high##1)                                                                                 \
    X(0x##high##2)                                                                                 \
    X(0x##high##3)                                                                                 \
    X(0x##high##4)                                                                                 \
    X(0x##high##5)                                                                                 \
    X(0x##high##6)                                                                                 \
    X(0x##high##7)                                                                                 \
    X(0x##high##8)                                                                                 \
    X(0x##high##9)                                                                                 \
    X(0x##high##a)                                                                                 \
    X(0x##high##b)                                                                                 \
    X(0x##high##c)                                                                                 \
    X(0x##high##d)                                                                                 \
    X(0x##high##e)                                                                                 \
    X(0x##high##f)
#define BLOCK(X, high)                                                                             \
    SIXTEEN(X, high##0)                                                                            \
    SIXTEEN(X, high##1)                                                                            \
    SIXTEEN(X, high##2)                                                                            \
    SIXTEEN(X, high##3)                                                                            \
    SIXTEEN(X, high##4)                                                                            \
    SIXTEEN(X, high##5)                                                                            \
    SIXTEEN(X, high##6)                                                                            \
    SIXTEEN(X, high##7)                                                                            \
    SIXTEEN(X, high##8)                                                                            \
    SIXTEEN(X, high##9)                                                                            \
    SIXTEEN(X, high##a)                                                                            \
    SIXTEEN(X, high##b)                                                                            \
    SIXTEEN(X, high##c)                                                                            \
    SIXTEEN(X, high##d)                                                                            \
    SIXTEEN(X, high##e)                                                                            \
    SIXTEEN(X, high##f)
#define EACH(X) BLOCK(X, 0) BLOCK(X, 1)
#define EACH_FAST_KEYWORDS(X)                                                                      \
    EACH(X) BLOCK(X, 2) BLOCK(X, 3) BLOCK(X, 4) BLOCK(X, 5) BLOCK(X, 6) BLOCK(X, 7)

static struct slot plain_slots[POOL_SIZE];
static struct slot keywords_slots[POOL_SIZE];
static struct slot fast_slots[POOL_SIZE];
static struct slot fast_keywords_slots[FAST_KEYWORDS_SIZE];

#define DEFINE_PLAIN(n)                                                                            \
    static PyObject *plain_##n(PyObject *self, PyObject *arg)                                      \
    {                                                                                              \
        return call_plain(self, arg, &plain_slots[n]);                                             \
    }
#define DEFINE_KEYWORDS(n)                                                                         \
    static PyObject *keywords_##n(PyObject *self, PyObject *args, PyObject *names)                 \
    {                                                                                              \
        return call_keywords(self, args, names, &keywords_slots[n]);                               \
    }
#define DEFINE_FAST(n)                                                                             \
    static PyObject *fast_##n(PyObject *self, PyObject *const *args, Py_ssize_t count)             \
    {                                                                                              \
        return call_fast(self, args, count, &fast_slots[n]);                                       \
    }
#define DEFINE_FAST_KEYWORDS(n)                                                                    \
    static PyObject *fast_keywords_##n(PyObject *self, PyObject *const *args, Py_ssize_t count,    \
                                       PyObject *names)                                            \
    {                                                                                              \
        return call_fast_keywords(self, args, count, names, &fast_keywords_slots[n]);              \
    }
EACH(DEFINE_PLAIN)
EACH(DEFINE_KEYWORDS)
EACH(DEFINE_FAST)
EACH_FAST_KEYWORDS(DEFINE_FAST_KEYWORDS)

#define PLAIN(n) plain_##n,
#define KEYWORDS(n) ANY_FUNCTION(keywords_##n),
#define FAST(n) ANY_FUNCTION(fast_##n),
#define FAST_KEYWORDS(n) ANY_FUNCTION(fast_keywords_##n),
static const PyCFunction plain_trampolines[POOL_SIZE] = {EACH(PLAIN)};
static const PyCFunction keywords_trampolines[POOL_SIZE] = {EACH(KEYWORDS)};
static const PyCFunction fast_trampolines[POOL_SIZE] = {EACH(FAST)};
static const PyCFunction fast_keywords_trampolines[FAST_KEYWORDS_SIZE] = {
    EACH_FAST_KEYWORDS(FAST_KEYWORDS)};

/* ---- probes: stand in for the original while a fresh pointer is tried out ------------------- */

static bool probed;

static PyObject *arrive(void)
{
    probed = true;
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *probe_plain(PyObject *self, PyObject *arg)
{
    (void)self;
    (void)arg;
    return arrive();
}

static PyObject *probe_keywords(PyObject *self, PyObject *args, PyObject *names)
{
    (void)self;
    (void)args;
    (void)names;
    return arrive();
}

static PyObject *probe_fast(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    (void)args;
    (void)count;
    return arrive();
}

static PyObject *probe_fast_keywords(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                     PyObject *names)
{
    (void)self;
    (void)args;
    (void)count;
    (void)names;
    return arrive();
}

/* ---- attach and detach ---------------------------------------------------------------------- */

static const struct pool {
    struct slot *slots;
    const PyCFunction *trampolines;
    size_t size;
    PyCFunction probe;
} pools[] = {
    {plain_slots, plain_trampolines, POOL_SIZE, probe_plain},
    {keywords_slots, keywords_trampolines, POOL_SIZE, ANY_FUNCTION(probe_keywords)},
    {fast_slots, fast_trampolines, POOL_SIZE, ANY_FUNCTION(probe_fast)},
    {fast_keywords_slots, fast_keywords_trampolines, FAST_KEYWORDS_SIZE,
     ANY_FUNCTION(probe_fast_keywords)},
};

/* The pool for a definition's calling convention; NULL: there is none. */
static const struct pool *find_pool(const PyMethodDef *definition)
{
    switch (definition->ml_flags & ~(METH_STATIC | METH_CLASS)) {
    case METH_VARARGS:
    case METH_O:
    case METH_NOARGS:
        return &pools[0];
    case METH_VARARGS | METH_KEYWORDS:
        return &pools[1];
    case METH_FASTCALL:
        return &pools[2];
    case METH_FASTCALL | METH_KEYWORDS:
        return &pools[3];
    default:
        return NULL;
    }
}

/* The index of the definition's slot, or of a free one; the size: there is none. */
static size_t find_slot(const struct pool *pool, const PyMethodDef *definition)
{
    size_t i = 0;
    while (i < pool->size && pool->slots[i].definition != NULL &&
           pool->slots[i].definition != definition) {
        i++;
    }
    return i;
}

/* A method of a class of Cython's takes its object as a further argument, and refuses a call
 * without one before it reaches the pointer. */
static bool call_arrives(PyObject *function, struct slot *slot, PyCFunction probe)
{
    PyCFunction kept = slot->original;
    probed = false;
    slot->original = probe;
    int count = (slot->definition->ml_flags & METH_O) != 0;
    const int most = PyCFunction_Check(function) ? count : count + 1;
    bool arrived = false;
    for (; !arrived && count <= most; count++) {
        PyObject *result = PyObject_CallFunctionObjArgs(function, count > 0 ? Py_None : NULL,
                                                        count > 1 ? Py_None : NULL, NULL);
        arrived = result == Py_None && probed;
        Py_XDECREF(result);
        PyErr_Clear();
    }
    slot->original = kept;
    return arrived;
}

static int attach(PyObject *object, const char *name, uint32_t owner, const char *library,
                  const struct opscope__pages *pages, opscope__op_of_self op_of_self, int index)
{
    bool is_bound;
    PyMethodDef *definition = opscope__definition(object, pages, &is_bound);
    const struct pool *pool = definition != NULL ? find_pool(definition) : NULL;
    if (pool == NULL) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    const size_t at = find_slot(pool, definition);
    if (at == pool->size) {
        return OPSCOPE_ERR_FULL;
    }
    struct slot *slot = &pool->slots[at];
    const PyCFunction trampoline = pool->trampolines[at];
    if (definition->ml_meth == trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    if (library != NULL && !opscope__is_in_library((void *)definition->ml_meth, library)) {
        return OPSCOPE_ERR_INVALID;
    }
    const struct slot before = *slot;
    if (slot->definition == NULL) {
        PyObject *self = PyCFunction_Check(object) ? PyCFunction_GetSelf(object) : NULL;
        const bool is_of_object =
            self != NULL && !PyModule_Check(self) && !PyCapsule_CheckExact(self);
        slot->self_is_input = !is_bound || (is_of_object && op_of_self == NULL);
        slot->op_of_self = NULL; /* until it is attached */
    }
    slot->definition = definition;
    slot->op = opscope_op_other(); /* the name of a function that is refused takes no room */
    slot->original = definition->ml_meth;
    slot->owner = owner;
    definition->ml_meth = trampoline;
    if (is_bound && !call_arrives(object, slot, pool->probe)) {
        definition->ml_meth = slot->original;
        *slot = before;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    slot->op = opscope__python_op(name);
    slot->op_of_self = op_of_self;
    slot->index = index;
    return OPSCOPE_OK;
}

int opscope__builtin_attach(PyObject *object, const char *name, uint32_t owner, const char *library,
                            const struct opscope__pages *pages)
{
    return attach(object, name, owner, library, pages, NULL, 0);
}

int opscope__builtin_attach_by_self(PyObject *object, const char *name, uint32_t owner,
                                    const struct opscope__pages *pages,
                                    opscope__op_of_self op_of_self, int index)
{
    return attach(object, name, owner, NULL, pages, op_of_self, index);
}

void opscope__builtin_detach(uint32_t owner)
{
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        for (size_t at = 0; at < pools[i].size; at++) {
            const struct slot *slot = &pools[i].slots[at];
            if (slot->definition != NULL && slot->owner == owner &&
                slot->definition->ml_meth == pools[i].trampolines[at]) {
                slot->definition->ml_meth = slot->original;
            }
        }
    }
}
