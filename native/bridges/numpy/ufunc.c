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

/* The GIL guards all fields; `slot` also needs the lock to write. Entries stay for ever, so that a
 * call in flight survives a detach. */
struct entry {
    PyObject *ufunc; /* the key; owned while attached */
    const opscope_op *op;
    opscope__vectorcall *slot;                                 /* NULL: not attached */
    const opscope_op *method_ops[OPSCOPE__UFUNC_METHOD_LIMIT]; /* each from its first call */
};

static struct entry table[TABLE_SIZE];
static size_t table_count;
static struct entry *attached[TABLE_LIMIT]; /* lock: those with a slot */
static size_t attached_count;               /* lock */
static opscope__vectorcall original; /* NumPy's, the same for every attached ufunc; or the probe */

/* Taken with or without the GIL, and never held while Python runs. In a fork it comes in the order
 * of the demand listeners (record/observer.c). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opscope__vectorcall numpys; /* lock: `original`, but never the probe */
static bool is_wanted = true;      /* lock */
static bool is_frozen;             /* lock: the interpreter ends, so pointers no longer change */

/* ---- hot path ------------------------------------------------------------------------------- */

/* The ufunc's entry, or the free entry for it. */
static inline struct entry *find(PyObject *ufunc)
{
    uint64_t hash = ((uint64_t)(uintptr_t)ufunc >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    struct entry *entry = &table[hash >> (64 - TABLE_LOG2)];
    while (entry->ufunc != ufunc && entry->ufunc != NULL) {
        entry = entry == &table[TABLE_SIZE - 1] ? table : entry + 1;
    }
    return entry;
}

static __attribute__((noinline)) OPSCOPE__HOT PyObject *call_seen(PyObject *ufunc,
                                                                  PyObject *const *args,
                                                                  size_t nargsf, PyObject *names)
{
    const size_t offset_flag = (size_t)1 << (8 * sizeof(size_t) - 1);
    const opscope_op *op = find(ufunc)->op;
    if (op == NULL) {
        return original(ufunc, args, nargsf, names);
    }
    struct opscope__python_arguments call = {
        .vector = args, .vector_count = nargsf & ~offset_flag, .names = names};
    const opscope_range_info info = OPSCOPE__PYTHON_RANGE_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, op, &info);
    return opscope__python_range_close(&range, original(ufunc, args, nargsf, names));
}

static OPSCOPE__HOT PyObject *trampoline(PyObject *ufunc, PyObject *const *args, size_t nargsf,
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
    if (entry->ufunc == NULL) {
        return NULL;
    }
    if (entry->method_ops[index] == NULL) {
        char name[256];
        snprintf(name, sizeof name, "%s.%s", entry->op->name, method);
        entry->method_ops[index] = opscope__python_op(name);
    }
    return entry->method_ops[index];
}

/* ---- replaced while wanted ------------------------------------------------------------------- */

static opscope__vectorcall trampoline_or(bool is_in)
{
    return is_in ? trampoline : numpys;
}

/* With the lock held. Partner: CPython's plain load at each call; either pointer is complete for
 * the call. */
static void put(const struct entry *entry, bool is_in)
{
    opscope__vectorcall expected = trampoline_or(!is_in);
    (void)__atomic_compare_exchange_n(entry->slot, &expected, trampoline_or(is_in), false,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED);
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

static PyObject *probed; /* the ufunc of the last call of `probe` */

/* Replaces NumPy's function while the bridge verifies a pointer. */
static PyObject *probe(PyObject *ufunc, PyObject *const *args, size_t nargsf, PyObject *names)
{
    (void)args;
    (void)nargsf;
    (void)names;
    probed = ufunc;
    Py_INCREF(Py_None);
    return Py_None;
}

static bool call_arrives(PyObject *ufunc)
{
    opscope__vectorcall kept = original;
    probed = NULL;
    original = probe;
    PyObject *result = PyObject_CallFunctionObjArgs(ufunc, NULL);
    original = kept;
    bool arrived = result == Py_None && probed == ufunc;
    Py_XDECREF(result);
    PyErr_Clear();
    return arrived;
}

/* The entry of a ufunc that is not attached, or a free one; NULL: it is, or there is no room. */
static struct entry *find_room(PyObject *ufunc, int *status)
{
    struct entry *entry = find(ufunc);
    if (entry->slot != NULL) {
        *status = OPSCOPE_ERR_BUSY;
        return NULL;
    }
    if (entry->ufunc == NULL && table_count == TABLE_LIMIT) {
        *status = OPSCOPE_ERR_FULL;
        return NULL;
    }
    return entry;
}

static void take(struct entry *entry, PyObject *ufunc, const char *name, opscope__vectorcall *slot)
{
    const opscope_op *op = opscope__python_op(name);
    table_count += entry->ufunc == NULL;
    if (op != entry->op) {
        memset(entry->method_ops, 0, sizeof entry->method_ops);
    }
    entry->ufunc = ufunc;
    entry->op = op;
    Py_INCREF(ufunc);
    pthread_mutex_lock(&lock);
    numpys = original;
    entry->slot = slot;
    attached[attached_count++] = entry;
    put(entry, is_wanted);
    pthread_mutex_unlock(&lock);
}

int opscope__ufunc_attach(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    PyObject *ufunc = (PyObject *)target->object;
    opscope__vectorcall *slot = opscope__ufunc_vectorcall(ufunc, pages);
    if (slot == NULL || (original != NULL && *slot != original && *slot != trampoline)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    int status = OPSCOPE_ERR_BUSY;
    struct entry *entry = *slot != trampoline ? find_room(ufunc, &status) : NULL;
    if (entry == NULL) {
        return status;
    }
    const opscope__vectorcall found = *slot;
    *slot = trampoline;
    const bool arrives = call_arrives(ufunc);
    *slot = found; /* no other code has changed it */
    if (!arrives) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    original = found;
    take(entry, ufunc, target->name, slot);
    return OPSCOPE_OK;
}

int opscope__ufunc_adopt(PyObject *ufunc, const char *name)
{
    opscope__vectorcall *slot = opscope__ufunc_known_vectorcall(ufunc);
    if (slot == NULL || original == NULL || *slot != original) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    int status = OPSCOPE_OK;
    struct entry *entry = find_room(ufunc, &status);
    if (entry != NULL) {
        take(entry, ufunc, name, slot);
    }
    return status;
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
