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
#include "bridges/pointer.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"
#include "bridges/trampolines.h"

typedef PyObject *(*keywords_function)(PyObject *, PyObject *, PyObject *);
typedef PyObject *(*fast_function)(PyObject *, PyObject *const *, Py_ssize_t);
typedef PyObject *(*fast_keywords_function)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);

/* Written by attach before a definition leads to the trampoline, and never taken back: a slot stays
 * with its definition for ever, so that a call in flight survives a detach, and a later attach
 * reuses it. Such an attach may write `original` and `op` while threads read them: either value is
 * right for a call. */
struct slot {
    PyMethodDef *definition; /* NULL: free, or lost */
    PyCFunction original;
    const opscope_op *op;
    opscope__op_of_self op_of_self; /* NULL: the operator does not depend on the object */
    const char *method;             /* for op_of_self: the function's name */
    int index;                      /* for op_of_self */
    uint32_t owner;
    bool is_lost; /* without the GIL: attaching failed, but a thread may call through it */
    bool self_is_input;
    bool takes_tuple; /* the only argument is a tuple of all */
};
#define SLOT_BYTES 56 /* a number, for the assembler */
_Static_assert(sizeof(struct slot) == SLOT_BYTES, "trampolines pass on the address of a slot");

/* Partner of both loads: the stores of attach. */
#define ORIGINAL(slot, type) ((type)(void (*)(void))opscope__load_relaxed(&(slot)->original))

/* ---- hot path ------------------------------------------------------------------------------- */

static const opscope_op *op_of(const struct slot *slot, PyObject *self)
{
    const opscope_op *op = NULL;
    if (slot->op_of_self != NULL) {
        op = slot->op_of_self(self, slot->index, slot->method);
    }
    return op != NULL ? op : opscope__load_relaxed(&slot->op);
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
        if (!opscope__python_range_fired(&range)) {                                                \
            return opscope__python_probe_arrives(slot) ? Py_NewRef(Py_None) : (ORIGINAL_CALL);     \
        }                                                                                          \
        return opscope__python_range_close(&range, ORIGINAL_CALL);                                 \
    } while (0)

/* One copy for all trampolines of a convention, which alone call it. Its slot comes last, so that a
 * trampoline only adds an argument and jumps. */
#define SHARED static __attribute__((used)) PyObject *

/* METH_VARARGS, METH_O and METH_NOARGS, which all pass one object or NULL. */
SHARED call_plain(PyObject *self, PyObject *arg, const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, PyCFunction)(self, arg);
    }
    const bool is_tuple = slot->takes_tuple;
    CALL_SEEN(slot, self, ORIGINAL(slot, PyCFunction)(self, arg), .tuple = is_tuple ? arg : NULL,
              .vector = &arg, .vector_count = !is_tuple && arg != NULL);
}

SHARED call_keywords(PyObject *self, PyObject *args, PyObject *names, const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, keywords_function)(self, args, names);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, keywords_function)(self, args, names), .tuple = args,
              .keywords = names);
}

SHARED call_fast(PyObject *self, PyObject *const *args, Py_ssize_t count, const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, fast_function)(self, args, count);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, fast_function)(self, args, count), .vector = args,
              .vector_count = (size_t)count);
}

SHARED call_fast_keywords(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names,
                          const struct slot *slot)
{
    if (opscope__python_range_is_skipped()) {
        return ORIGINAL(slot, fast_keywords_function)(self, args, count, names);
    }
    CALL_SEEN(slot, self, ORIGINAL(slot, fast_keywords_function)(self, args, count, names),
              .vector = args, .vector_count = (size_t)count, .names = names);
}

/* ---- pools: trampolines for each calling convention ------------------------------------------ */

/* OpenCV's functions have the convention with keywords, and nearly all of Cython's the last one. */
#define POOL_SIZE 512
#define KEYWORDS_SIZE 2048
#define FAST_KEYWORDS_SIZE 4096

static __attribute__((used)) struct slot plain_slots[POOL_SIZE];
static __attribute__((used)) struct slot keywords_slots[KEYWORDS_SIZE];
static __attribute__((used)) struct slot fast_slots[POOL_SIZE];
static __attribute__((used)) struct slot fast_keywords_slots[FAST_KEYWORDS_SIZE];

OPSCOPE__TRAMPOLINES(plain_trampolines, POOL_SIZE, plain_slots, SLOT_BYTES, call_plain, 2);
OPSCOPE__TRAMPOLINES(keywords_trampolines, KEYWORDS_SIZE, keywords_slots, SLOT_BYTES, call_keywords,
                     3);
OPSCOPE__TRAMPOLINES(fast_trampolines, POOL_SIZE, fast_slots, SLOT_BYTES, call_fast, 3);
OPSCOPE__TRAMPOLINES(fast_keywords_trampolines, FAST_KEYWORDS_SIZE, fast_keywords_slots, SLOT_BYTES,
                     call_fast_keywords, 4);

/* ---- attach and detach ---------------------------------------------------------------------- */

static uint16_t plain_index[2 * POOL_SIZE], keywords_index[2 * KEYWORDS_SIZE],
    fast_index[2 * POOL_SIZE], fast_keywords_index[2 * FAST_KEYWORDS_SIZE];

static struct pool {
    struct slot *slots;
    void (*trampolines)(void);
    uint16_t *index; /* twice the size; where a definition's hash leads, or after it: its slot's
                        number + 1; 0: none */
    size_t size;
    size_t first_free; /* all slots below are taken */
} pools[] = {
    {plain_slots, plain_trampolines, plain_index, POOL_SIZE, 0},
    {keywords_slots, keywords_trampolines, keywords_index, KEYWORDS_SIZE, 0},
    {fast_slots, fast_trampolines, fast_index, POOL_SIZE, 0},
    {fast_keywords_slots, fast_keywords_trampolines, fast_keywords_index, FAST_KEYWORDS_SIZE, 0},
};

static PyCFunction trampoline_at(const struct pool *pool, size_t at)
{
    return (PyCFunction)opscope__trampoline(pool->trampolines, at);
}

/* The pool for a definition's calling convention; NULL: there is none. */
static struct pool *find_pool(const PyMethodDef *definition)
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

/* Where the index has the definition, or would have it. Half of it is free at least. */
static uint16_t *find_entry(const struct pool *pool, const PyMethodDef *definition)
{
    const uint64_t hash = ((uintptr_t)definition >> 4) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) % (2 * pool->size);
    while (pool->index[at] != 0 && pool->slots[pool->index[at] - 1].definition != definition) {
        at = (at + 1) % (2 * pool->size);
    }
    return &pool->index[at];
}

/* The number of the definition's slot, or of a free one; the size: there is none. */
static size_t find_slot(struct pool *pool, const PyMethodDef *definition)
{
    const uint16_t entry = *find_entry(pool, definition);
    if (entry != 0) {
        return entry - 1u;
    }
    size_t *next = &pool->first_free;
    while (*next < pool->size &&
           (pool->slots[*next].definition != NULL || pool->slots[*next].is_lost)) {
        ++*next;
    }
    return *next;
}

/* A method of a class of Cython's takes its object as a further argument, and refuses a call
 * without one before it reaches the pointer. */
static bool call_arrives(PyObject *function, const struct slot *slot)
{
    int count = (slot->definition->ml_flags & METH_O) != 0;
    const int most = PyCFunction_Check(function) ? count : count + 1;
    bool arrived = false;
    for (; !arrived && count <= most; count++) {
        opscope__python_probe_begin(slot);
        PyObject *result = PyObject_CallFunctionObjArgs(function, count > 0 ? Py_None : NULL,
                                                        count > 1 ? Py_None : NULL, NULL);
        arrived = opscope__python_probe_end() && result == Py_None;
        Py_XDECREF(result);
        PyErr_Clear();
    }
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

/* What does not change from one attach to the next. */
static void describe(struct slot *slot, PyObject *object, PyMethodDef *definition, bool is_bound,
                     opscope__op_of_self op_of_self, int index)
{
    PyObject *self = PyCFunction_Check(object) ? PyCFunction_GetSelf(object) : NULL;
    const bool is_of_object = self != NULL && !PyModule_Check(self) && !PyCapsule_CheckExact(self);
    slot->self_is_input = !is_bound || (is_of_object && op_of_self == NULL);
    slot->takes_tuple = (definition->ml_flags & METH_VARARGS) != 0;
    slot->op_of_self = op_of_self;
    slot->method = definition->ml_name;
    slot->index = index;
    slot->definition = definition;
}

static int attach(PyObject *object, const char *name, uint32_t owner, const char *library,
                  const struct opscope__pages *pages, opscope__op_of_self op_of_self, int index)
{
    bool is_bound;
    PyMethodDef *definition = opscope__definition(object, pages, &is_bound);
    struct pool *pool = definition != NULL ? find_pool(definition) : NULL;
    if (pool == NULL) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    const size_t at = find_slot(pool, definition);
    if (at == pool->size) {
        return OPSCOPE_ERR_FULL;
    }
    struct slot *slot = &pool->slots[at];
    const PyCFunction trampoline = trampoline_at(pool, at);
    const PyCFunction found = definition->ml_meth;
    const PyCFunction code = found == trampoline ? slot->original : found;
    if (library != NULL && !opscope__is_in_library((void *)code, library)) {
        return OPSCOPE_ERR_INVALID;
    }
    if (found == trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    const bool is_new = slot->definition == NULL;
    if (is_new) {
        describe(slot, object, definition, is_bound, op_of_self, index);
        slot->op = opscope_op_other(); /* the name of a function that is refused takes no room */
    }
    slot->owner = owner;
    /* Partner: the loads on the hot path, by threads that a former attach led here. */
    opscope__store_relaxed(&slot->original, found);
    opscope__pointer_publish();
    const bool is_in = OPSCOPE__REPLACE_POINTER(&definition->ml_meth, found, trampoline);
    if (!is_in || (is_bound && !call_arrives(object, slot))) {
        (void)OPSCOPE__REPLACE_POINTER(&definition->ml_meth, trampoline, found);
        if (is_new) {
            give_up(slot);
        }
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (is_new) {
        *find_entry(pool, definition) = (uint16_t)(at + 1);
    }
    opscope__store_relaxed(&slot->op, opscope__python_op(name)); /* partner: op_of() */
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
            if (slot->definition != NULL && slot->owner == owner) {
                (void)OPSCOPE__REPLACE_POINTER(&slot->definition->ml_meth,
                                               trampoline_at(&pools[i], at), slot->original);
            }
        }
    }
}
