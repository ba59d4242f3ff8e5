/* numpy/builtin.c -- calls of builtin functions and methods.
 *
 * CPython reads ml_meth from a builtin's definition at each call, and all bound copies of a method
 * share one definition, so replacing ml_meth catches every caller. The pointer carries no data:
 * each definition takes a slot with its own trampoline, from a pool for its calling convention.
 */
#include "bridges/numpy/pointers.h"
#include "bridges/numpy/range.h"

#include <string.h>

typedef PyObject *(*keywords_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* Written by attach before a definition leads to the trampoline, and never taken back: a slot stays
 * with its definition for ever, so that a call in flight survives a detach, and a later attach
 * reuses it. Such an attach may write `original` and `op` while threads read them: either value is
 * right for a call. */
struct slot {
    PyMethodDef *definition; /* NULL: free, or lost */
    bool is_lost; /* without the GIL: attaching failed, but a thread may call through it */
    PyCFunction original;
    const opscope_op *op;
    PyCFunction trampoline;
    int ufunc_method; /* index among the ufunc methods; -1: not a ufunc method */
    bool self_is_input;
    bool takes_tuple;   /* the only argument is a tuple of all */
    const char *method; /* its name, if it is a ufunc method */
};

#define ANY_FUNCTION(function) ((PyCFunction)(void (*)(void))(function))
/* Partner of both loads: the stores of attach. */
#define ORIGINAL(slot, type) ((type)(void (*)(void))opscope__load_relaxed(&(slot)->original))

/* ---- hot path ------------------------------------------------------------------------------- */

static const opscope_op *op_of(const struct slot *slot, PyObject *self)
{
    const opscope_op *op = NULL;
    if (slot->ufunc_method >= 0) {
        op = opscope__ufunc_method_op(self, slot->ufunc_method, slot->method);
    }
    return op != NULL ? op : opscope__load_relaxed(&slot->op);
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
        if (!opscope__numpy_range_fired(&range)) {                                                 \
            return opscope__numpy_probe_arrives(slot) ? Py_NewRef(Py_None) : (ORIGINAL_CALL);      \
        }                                                                                          \
        return opscope__numpy_range_close(&range, ORIGINAL_CALL);                                  \
    } while (0)

/* METH_VARARGS, METH_O and METH_NOARGS, which all pass one object or NULL. */
static PyObject *call_plain(const struct slot *slot, PyObject *self, PyObject *arg)
{
    if (opscope__numpy_range_is_skipped()) {
        return ORIGINAL(slot, PyCFunction)(self, arg);
    }
    const bool is_tuple = slot->takes_tuple;
    CALL_SEEN(slot, self, ORIGINAL(slot, PyCFunction)(self, arg), .tuple = is_tuple ? arg : NULL,
              .vector = &arg, .vector_count = !is_tuple && arg != NULL);
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

/* ---- attach and detach ---------------------------------------------------------------------- */

/* The pool for a definition's calling convention; NULL if there is none. */
static struct slot *pool_of(const PyMethodDef *definition)
{
    switch (definition->ml_flags) {
    case METH_VARARGS:
    case METH_O:
    case METH_NOARGS:
        return plain_pool;
    case METH_VARARGS | METH_KEYWORDS:
        return keywords_pool;
    case METH_FASTCALL:
        return fast_pool;
    case METH_FASTCALL | METH_KEYWORDS:
        return fast_keywords_pool;
    default:
        return NULL;
    }
}

/* The definition's slot, or a free one, or NULL. */
static struct slot *find_slot(struct slot *pool, const PyMethodDef *definition)
{
    for (struct slot *slot = pool; slot < pool + POOL_SIZE; slot++) {
        if ((slot->definition == NULL && !slot->is_lost) || slot->definition == definition) {
            return slot;
        }
    }
    return NULL;
}

static bool call_arrives(PyObject *builtin, const struct slot *slot)
{
    PyObject *one = slot->definition->ml_flags == METH_O ? Py_None : NULL;
    opscope__numpy_probe_begin(slot);
    PyObject *result = PyObject_CallFunctionObjArgs(builtin, one, NULL);
    const bool arrived = opscope__numpy_probe_end() && result == Py_None;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

/* After a fault: the definition may not live as long as the process. */
static void give_up(struct slot *slot)
{
    slot->definition = NULL;
#ifdef Py_GIL_DISABLED
    slot->is_lost = true;
#endif
}

/* Written by attach. */
static int ufunc_method_count;

int opscope__builtin_attach(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    PyObject *builtin = (PyObject *)target->object;
    PyMethodDef *definition = opscope__builtin_definition(builtin, pages);
    struct slot *pool = definition != NULL ? pool_of(definition) : NULL;
    if (pool == NULL) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    struct slot *slot = find_slot(pool, definition);
    if (slot == NULL) {
        return OPSCOPE_ERR_FULL;
    }
    const PyCFunction found = definition->ml_meth;
    if (found == slot->trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    const bool is_ufunc_method = target->kind == OPSCOPE_NUMPY_UFUNC_METHOD;
    const bool is_new = slot->definition == NULL;
    if (is_new) {
        PyObject *self = PyCFunction_GetSelf(builtin);
        slot->self_is_input = !is_ufunc_method && self != NULL && !PyModule_Check(self);
        slot->ufunc_method = is_ufunc_method && ufunc_method_count < OPSCOPE__UFUNC_METHOD_LIMIT
                                 ? ufunc_method_count
                                 : -1;
        slot->takes_tuple = (definition->ml_flags & METH_VARARGS) != 0;
        slot->method = definition->ml_name;
        slot->definition = definition;
    }
    /* Partner: the loads on the hot path, by threads that a former attach led here. */
    opscope__store_relaxed(&slot->op, opscope__numpy_op(target->name));
    opscope__store_relaxed(&slot->original, found);
    opscope__numpy_publish();
    const bool is_in = OPSCOPE__REPLACE_POINTER(&definition->ml_meth, found, slot->trampoline);
    if (!is_in || !call_arrives(builtin, slot)) {
        (void)OPSCOPE__REPLACE_POINTER(&definition->ml_meth, slot->trampoline, found);
        if (is_new) {
            give_up(slot);
        }
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    ufunc_method_count += is_new && slot->ufunc_method >= 0; /* there are few of these indexes */
    return OPSCOPE_OK;
}

void opscope__builtin_detach(void)
{
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) {
        for (struct slot *slot = pools[i]; slot < pools[i] + POOL_SIZE; slot++) {
            if (slot->definition != NULL) {
                (void)OPSCOPE__REPLACE_POINTER(&slot->definition->ml_meth, slot->trampoline,
                                               slot->original);
            }
        }
    }
}
