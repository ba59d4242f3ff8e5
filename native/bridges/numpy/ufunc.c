/* numpy/ufunc.c -- calls of ufuncs, and the names of their methods.
 *
 * Every ufunc object has a vectorcall pointer to the same NumPy function; the operators of ndarray
 * also call the object. One trampoline serves all ufuncs: it finds the ufunc in a hash table. Does
 * not see ufuncs that were not attached. The ufuncs of other packages come one by one, as they are
 * made (numpy/ufunc_maker.c).
 *
 * The trampoline is in place only while a callback needs operators, as in a window. Between windows
 * a ufunc costs the same as without Opscope (the path through a trampoline takes 2 % of an addition
 * of ten numbers). The thread that opens a window does not hold the GIL, so pointers change while
 * the program calls through them. That is safe: they are aligned words; NumPy's function and the
 * trampoline are both correct at any moment; the bridge keeps the ufuncs alive; a call in flight
 * ends where it began. The bridge does not touch a pointer that other code has replaced meanwhile.
 * Builtins keep their trampolines: Python hashes them by the pointer, which must not change while
 * they are keys of a dict.
 */
#include "base/hot.h"
#include "bridges/numpy/pointers.h"
#include "bridges/python_call.h"
#include "bridges/python_op.h"
#include "record/demand.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TABLE_LOG2 = 11, TABLE_SIZE = 1 << TABLE_LOG2, TABLE_LIMIT = TABLE_SIZE * 3 / 4 };

/* Entries stay for ever, so that a call in flight survives a detach. */
struct entry {
    PyObject *ufunc;      /* the key; attach writes it, once, after `op`; owned while attached */
    const opscope_op *op; /* attach writes it; NULL: the ufunc could not be attached */
    opscope__vectorcall *slot; /* the lock; NULL: not attached */
    /* Each from its first call, by any thread. */
    const opscope_op *method_ops[OPSCOPE__UFUNC_METHOD_LIMIT];
};

static struct entry table[TABLE_SIZE];
static size_t table_count;                  /* attach */
static struct entry *attached[TABLE_LIMIT]; /* the lock: those with a slot */
static size_t attached_count;               /* the lock */
/* NumPy's, the same for every ufunc; attach writes it, once, before a ufunc leads to the
 * trampoline. */
static opscope__vectorcall original;

/* Taken with or without the GIL, and never held while Python runs. In a fork it comes in the order
 * of the demand listeners (record/observer.c). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_wanted = true; /* lock */
static bool is_frozen;        /* lock: the interpreter ends, so pointers no longer change */

/* ---- hot path ------------------------------------------------------------------------------- */

/* The ufunc's entry, or the free entry for it. */
static inline struct entry *find(PyObject *ufunc)
{
    uint64_t hash = ((uint64_t)(uintptr_t)ufunc >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    struct entry *entry = &table[hash >> (64 - TABLE_LOG2)];
    for (;;) {
        /* Partner: the release in attach. */
        const PyObject *key = opscope__load_acquire(&entry->ufunc);
        if (key == ufunc || key == NULL) {
            return entry;
        }
        entry = entry == &table[TABLE_SIZE - 1] ? table : entry + 1;
    }
}

static __attribute__((noinline)) OPSCOPE__HOT PyObject *call_seen(PyObject *ufunc,
                                                                  PyObject *const *args,
                                                                  size_t nargsf, PyObject *names)
{
    const size_t offset_flag = (size_t)1 << (8 * sizeof(size_t) - 1);
    const opscope_op *op = opscope__load_relaxed(&find(ufunc)->op); /* partner: attach */
    if (op == NULL) {
        return original(ufunc, args, nargsf, names);
    }
    struct opscope__python_arguments call = {
        .vector = args, .vector_count = nargsf & ~offset_flag, .names = names};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, op, &info);
    if (!opscope__python_range_fired(&range)) {
        return opscope__python_probe_arrives(ufunc) ? Py_NewRef(Py_None)
                                                    : original(ufunc, args, nargsf, names);
    }
    return opscope__python_range_close(&range, original(ufunc, args, nargsf, names));
}

static OPSCOPE__HOT OPSCOPE__IN_ONE_LINE PyObject *trampoline(PyObject *ufunc,
                                                              PyObject *const *args, size_t nargsf,
                                                              PyObject *names)
{
    if (opscope__python_range_is_skipped()) {
        return original(ufunc, args, nargsf, names);
    }
    return call_seen(ufunc, args, nargsf, names);
}

const opscope_op *opscope__ufunc_method_op(PyObject *ufunc, int index, const char *method)
{
    struct entry *entry = find(ufunc);
    /* Partner: the release in attach, which also publishes the operator. An attach on another
     * thread may be filling in the free entry. */
    if (opscope__load_acquire(&entry->ufunc) != ufunc) {
        return NULL;
    }
    const opscope_op *op = opscope__load_relaxed(&entry->op); /* partner: attach */
    if (op == NULL) {
        return NULL;
    }
    /* Partner: the release below. Two threads may both come first; they find the same operator. */
    const opscope_op *method_op = opscope__load_acquire(&entry->method_ops[index]);
    if (method_op == NULL) {
        char name[256];
        snprintf(name, sizeof name, "%s.%s", op->name, method);
        method_op = opscope__python_op(name);
        opscope__store_release(&entry->method_ops[index], method_op);
    }
    return method_op;
}

/* ---- replaced while wanted ------------------------------------------------------------------- */

static opscope__vectorcall trampoline_or(bool is_in)
{
    return is_in ? trampoline : original;
}

/* With the lock held. */
static void put(const struct entry *entry, bool is_in)
{
    (void)OPSCOPE__REPLACE_POINTER(entry->slot, trampoline_or(!is_in), trampoline_or(is_in));
}

static void follow_demand(void)
{
    pthread_mutex_lock(&lock);
    struct opscope__demand demand;
    opscope__demand_read(&demand);
    const bool is_in = (demand.scopes >> OPSCOPE_FUNCTION & 1) != 0;
    if (is_in != is_wanted && !is_frozen) {
        is_wanted = is_in;
        for (size_t i = 0; i < attached_count; i++) {
            put(attached[i], is_in);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void fork_prepare(void)
{
    pthread_mutex_lock(&lock);
}

static void fork_done(void)
{
    pthread_mutex_unlock(&lock);
}

void opscope__ufunc_follow_demand(void)
{
    static const struct opscope__demand_listener listener = {
        .changed = follow_demand, .fork_prepare = fork_prepare, .fork_done = fork_done};
    opscope__demand_listen(&listener);
    follow_demand();
}

void opscope_numpy_freeze(void)
{
    pthread_mutex_lock(&lock);
    is_frozen = true;
    pthread_mutex_unlock(&lock);
}

/* ---- attach and detach ---------------------------------------------------------------------- */

static bool call_arrives(PyObject *ufunc)
{
    opscope__python_probe_begin(ufunc);
    PyObject *result = PyObject_CallFunctionObjArgs(ufunc, NULL);
    const bool arrived = opscope__python_probe_end() && result == Py_None;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

/* Fills in an entry, and leads the pointer to the trampoline. False: other code has replaced it
 * meanwhile. */
static bool lead_in(struct entry *entry, PyObject *ufunc, const char *name,
                    opscope__vectorcall *slot)
{
    const opscope_op *op = opscope__python_op(name);
    if (op != entry->op) {
        for (size_t i = 0; i < OPSCOPE__UFUNC_METHOD_LIMIT; i++) {
            opscope__store_relaxed(&entry->method_ops[i], NULL); /* partner: its acquire */
        }
    }
    opscope__store_relaxed(&entry->op, op); /* partner: the loads on the hot path */
    table_count += entry->ufunc == NULL;
    opscope__store_release(&entry->ufunc, ufunc); /* partner: the acquire in find() */
    opscope__pointer_publish();
    return OPSCOPE__REPLACE_POINTER(slot, original, trampoline);
}

/* After a fault, with `before` as the entry was. Without the GIL a thread may have found the entry,
 * so that it stays, without an operator. */
static void give_up(struct entry *entry, const struct entry *before, bool is_first)
{
#ifdef Py_GIL_DISABLED
    (void)before;
    (void)is_first;
    opscope__store_relaxed(&entry->op, NULL);
#else
    table_count -= before->ufunc == NULL;
    *entry = *before;
    original = is_first ? NULL : original;
#endif
}

static void keep(struct entry *entry, opscope__vectorcall *slot)
{
    Py_INCREF(entry->ufunc);
    pthread_mutex_lock(&lock);
    entry->slot = slot;
    attached[attached_count++] = entry;
    if (!is_wanted) {
        put(entry, false);
    }
    pthread_mutex_unlock(&lock);
}

/* OK if a ufunc with that pointer can be attached. */
static int check(const struct entry *entry, opscope__vectorcall found)
{
    if (entry->slot != NULL || found == trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    if (original != NULL && found != original) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    return entry->ufunc == NULL && table_count == TABLE_LIMIT ? OPSCOPE_ERR_FULL : OPSCOPE_OK;
}

int opscope__ufunc_attach(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    PyObject *ufunc = (PyObject *)target->object;
    opscope__vectorcall *slot = opscope__ufunc_vectorcall(ufunc, pages);
    struct entry *entry = find(ufunc);
    const int status = slot != NULL ? check(entry, *slot) : OPSCOPE_ERR_UNSUPPORTED;
    if (status != OPSCOPE_OK) {
        return status;
    }
    const struct entry before = *entry;
    const bool is_first = original == NULL;
    original = is_first ? *slot : original;
    if (!lead_in(entry, ufunc, target->name, slot) || !call_arrives(ufunc)) {
        (void)OPSCOPE__REPLACE_POINTER(slot, trampoline, original);
        give_up(entry, &before, is_first);
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    keep(entry, slot);
    return OPSCOPE_OK;
}

int opscope__ufunc_adopt(PyObject *ufunc, const char *name)
{
    opscope__vectorcall *slot = opscope__ufunc_known_vectorcall(ufunc);
    if (slot == NULL || original == NULL) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    struct entry *entry = find(ufunc);
    const int status = check(entry, *slot);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (!lead_in(entry, ufunc, name, slot)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    keep(entry, slot);
    return OPSCOPE_OK;
}

void opscope__ufunc_detach(void)
{
    pthread_mutex_lock(&lock);
    const size_t count = attached_count;
    for (size_t i = 0; i < count; i++) {
        put(attached[i], false);
        attached[i]->slot = NULL;
    }
    attached_count = 0;
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++) {
        Py_DECREF(attached[i]->ufunc);
    }
}
