/* numpy/builtin.c -- calls of builtin functions and methods.
 *
 * The bridge replaces the ml_meth of definitions (bridges/builtin_definition.h). That pointer
 * carries no data: each definition takes a slot with its own trampoline, from a pool for its
 * calling convention.
 */
#include "bridges/numpy/pointers.h"
#include "bridges/numpy/range.h"

#include <string.h>

typedef PyObject *(*keywords_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);
typedef opscope__fast_keywords_function fast_keywords_function;

/* The GIL guards all slots. A slot stays with its definition for ever, so that a call in flight
 * survives a detach, and a later attach reuses it. */
struct slot {
    PyMethodDef *definition; /* NULL: free */
    PyCFunction original;
    const opscope_op *op;
    PyCFunction trampoline;
    int ufunc_method; /* index among the ufunc methods; -1: not a ufunc method */
    bool self_is_input;
};

#define ANY_FUNCTION(function) ((PyCFunction)(void (*)(void))(function))
#define ORIGINAL(slot, type) ((type)(void (*)(void))(slot)->original)

/* ---- hot path ------------------------------------------------------------------------------- */

static const opscope_op *op_of(const struct slot *slot, PyObject *self)
{
    const opscope_op *op = NULL;
    if (slot->ufunc_method >= 0) {
        op = opscope__ufunc_method_op(self, slot->ufunc_method, slot->definition->ml_name);
    }
    return op != NULL ? op : slot->op;
}

/* One per calling convention: ORIGINAL_CALL calls the original, the other arguments initialise an
 * opscope__numpy_arguments. */
#define CALL_SEEN(slot, self, ORIGINAL_CALL, ...)                                                  \
    do {                                                                                           \
        struct opscope__numpy_arguments call = {.self = (slot)->self_is_input ? (self) : NULL,     \
                                                __VA_ARGS__};                                      \
        const opscope_range_info info = OPSCOPE__NUMPY_RANGE_INFO(&call);                          \
        opscope_range range;                                                                       \
        opscope__range_open_slow(&range, op_of(slot, self), &info);                                \
        return opscope__numpy_range_close(&range, ORIGINAL_CALL);                                  \
    } while (0)

/* METH_VARARGS, METH_O and METH_NOARGS, which all pass one object or NULL. */
static PyObject *call_plain(const struct slot *slot, PyObject *self, PyObject *arg)
{
    if (opscope__numpy_range_is_skipped()) {
        return slot->original(self, arg);
    }
    bool is_tuple = (slot->definition->ml_flags & METH_VARARGS) != 0;
    CALL_SEEN(slot, self, slot->original(self, arg), .tuple = is_tuple ? arg : NULL, .vector = &arg,
              .vector_count = !is_tuple && arg != NULL);
}

static PyObject *call_keywords(const struct slot *slot, PyObject *self, PyObject *args,
                               PyObject *names)
{
    if (opscope__numpy_range_is_skipped()) {
        return ORIGINAL(slot, keywords_function)(self, args, names);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, keywords_function)(self, args, names), .tuple = args,
              .keywords = names);
}

static PyObject *call_fast(const struct slot *slot, PyObject *self, PyObject *const *args,
                           Py_ssize_t count)
{
    if (opscope__numpy_range_is_skipped()) {
        return ORIGINAL(slot, fast_function)(self, args, count);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, fast_function)(self, args, count), .vector = args,
              .vector_count = (size_t)count);
}

static PyObject *call_fast_keywords(const struct slot *slot, PyObject *self, PyObject *const *args,
                                    Py_ssize_t count, PyObject *names)
{
    if (opscope__numpy_range_is_skipped()) {
        return ORIGINAL(slot, fast_keywords_function)(self, args, count, names);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, fast_keywords_function)(self, args, count, names),
              .vector = args, .vector_count = (size_t)count, .names = names);
}

/* ---- pools: 64 trampolines for each calling convention -------------------------------------- */

enum { POOL_SIZE = 64 };

/* Octal numbers from 00 to 077. */
#define EIGHT(X, high)                                                                             \
    X(0##high##0)                                                                                  \
    X(0##high##1)                                                                                  \
    X(0##high##2) X(0##high##3) X(0##high##4) X(0##high##5) X(0##high##6) X(0##high##7)
#define SIXTY_FOUR(X)                                                                              \
    EIGHT(X, 0) EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7)

static struct slot plain_pool[POOL_SIZE];
static struct slot keywords_pool[POOL_SIZE];
static struct slot fast_pool[POOL_SIZE];
static struct slot fast_keywords_pool[POOL_SIZE];

#define DEFINE_PLAIN(n)                                                                            \
    static PyObject *plain_##n(PyObject *self, PyObject *arg)                                      \
    {                                                                                              \
        return call_plain(&plain_pool[n], self, arg);                                              \
    }
#define DEFINE_KEYWORDS(n)                                                                         \
    static PyObject *keywords_##n(PyObject *self, PyObject *args, PyObject *names)                 \
    {                                                                                              \
        return call_keywords(&keywords_pool[n], self, args, names);                                \
    }
#define DEFINE_FAST(n)                                                                             \
    static PyObject *fast_##n(PyObject *self, PyObject *const *args, Py_ssize_t count)             \
    {                                                                                              \
        return call_fast(&fast_pool[n], self, args, count);                                        \
    }
#define DEFINE_FAST_KEYWORDS(n)                                                                    \
    static PyObject *fast_keywords_##n(PyObject *self, PyObject *const *args, Py_ssize_t count,    \
                                       PyObject *names)                                            \
    {                                                                                              \
        return call_fast_keywords(&fast_keywords_pool[n], self, args, count, names);               \
    }
SIXTY_FOUR(DEFINE_PLAIN)
SIXTY_FOUR(DEFINE_KEYWORDS)
SIXTY_FOUR(DEFINE_FAST)
SIXTY_FOUR(DEFINE_FAST_KEYWORDS)

#define PLAIN_SLOT(n) {.trampoline = plain_##n},
#define KEYWORDS_SLOT(n) {.trampoline = ANY_FUNCTION(keywords_##n)},
#define FAST_SLOT(n) {.trampoline = ANY_FUNCTION(fast_##n)},
#define FAST_KEYWORDS_SLOT(n) {.trampoline = ANY_FUNCTION(fast_keywords_##n)},
static struct slot plain_pool[POOL_SIZE] = {SIXTY_FOUR(PLAIN_SLOT)};
static struct slot keywords_pool[POOL_SIZE] = {SIXTY_FOUR(KEYWORDS_SLOT)};
static struct slot fast_pool[POOL_SIZE] = {SIXTY_FOUR(FAST_SLOT)};
static struct slot fast_keywords_pool[POOL_SIZE] = {SIXTY_FOUR(FAST_KEYWORDS_SLOT)};

static struct slot *const pools[] = {plain_pool, keywords_pool, fast_pool, fast_keywords_pool};

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

/* The pool for a definition's calling convention, and its probe; false if there is no such pool. */
static bool find_pool(const PyMethodDef *definition, struct slot **pool, PyCFunction *probe)
{
    switch (definition->ml_flags) {
    case METH_VARARGS:
    case METH_O:
    case METH_NOARGS:
        *pool = plain_pool;
        *probe = probe_plain;
        return true;
    case METH_VARARGS | METH_KEYWORDS:
        *pool = keywords_pool;
        *probe = ANY_FUNCTION(probe_keywords);
        return true;
    case METH_FASTCALL:
        *pool = fast_pool;
        *probe = ANY_FUNCTION(probe_fast);
        return true;
    case METH_FASTCALL | METH_KEYWORDS:
        *pool = fast_keywords_pool;
        *probe = ANY_FUNCTION(probe_fast_keywords);
        return true;
    default:
        return false;
    }
}

/* The definition's slot, or a free one, or NULL. */
static struct slot *find_slot(struct slot *pool, const PyMethodDef *definition)
{
    for (struct slot *slot = pool; slot < pool + POOL_SIZE; slot++) {
        if (slot->definition == NULL || slot->definition == definition) {
            return slot;
        }
    }
    return NULL;
}

static bool call_arrives(PyObject *builtin, struct slot *slot, PyCFunction probe)
{
    PyCFunction kept = slot->original;
    PyObject *one = slot->definition->ml_flags == METH_O ? Py_None : NULL;
    probed = false;
    slot->original = probe;
    PyObject *result = PyObject_CallFunctionObjArgs(builtin, one, NULL);
    slot->original = kept;
    bool arrived = result == Py_None && probed;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

static int next_ufunc_method(void)
{
    static int count;
    return count < OPSCOPE__UFUNC_METHOD_LIMIT ? count++ : -1;
}

int opscope__builtin_attach(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    PyObject *builtin = (PyObject *)target->object;
    PyMethodDef *definition = opscope__builtin_definition(builtin, pages);
    struct slot *pool;
    PyCFunction probe;
    if (definition == NULL || !find_pool(definition, &pool, &probe)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    struct slot *slot = find_slot(pool, definition);
    if (slot == NULL) {
        return OPSCOPE_ERR_FULL;
    }
    if (definition->ml_meth == slot->trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    const opscope_op *op = opscope__numpy_op(target->name);
    const bool is_ufunc_method = target->kind == OPSCOPE_NUMPY_UFUNC_METHOD;
    const struct slot before = *slot;
    if (slot->definition == NULL) {
        PyObject *self = PyCFunction_GetSelf(builtin);
        slot->self_is_input = !is_ufunc_method && self != NULL && !PyModule_Check(self);
        slot->ufunc_method = -1; /* until it is attached: there are few of these indexes */
    }
    slot->definition = definition;
    slot->op = op;
    slot->original = definition->ml_meth;
    definition->ml_meth = slot->trampoline;
    if (!call_arrives(builtin, slot, probe)) {
        definition->ml_meth = slot->original;
        *slot = before;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (before.definition == NULL && is_ufunc_method) {
        slot->ufunc_method = next_ufunc_method();
    }
    return OPSCOPE_OK;
}

void opscope__builtin_detach(void)
{
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        for (struct slot *slot = pools[i]; slot < pools[i] + POOL_SIZE; slot++) {
            if (slot->definition != NULL && slot->definition->ml_meth == slot->trampoline) {
                slot->definition->ml_meth = slot->original;
            }
        }
    }
}
