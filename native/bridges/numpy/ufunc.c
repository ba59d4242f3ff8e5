/* numpy_ufunc.c -- calls of ufuncs, and the names of their methods.
 *
 * A ufunc object carries a vectorcall pointer, the same NumPy function in all of them; the
 * operators of ndarray call the object too. One trampoline serves all: it finds the ufunc in a hash
 * table. Does not see ufuncs that nobody attached.
 *
 * The trampoline is there only while somebody wants to see operators, as in a window: between
 * windows a ufunc costs what it costs without Opscope (of an addition of ten numbers the way
 * through a trampoline is 2 %). Who opens a window is a thread without the GIL, so pointers change
 * while the program calls through them. That is harmless: they are aligned words, NumPy's function
 * and the trampoline are both right at any moment, the ufuncs are kept alive, and a call in flight
 * ends where it began. A pointer that somebody else has replaced meanwhile is left alone. Builtins
 * are not treated so: Python hashes them by the pointer, which must not change while they lie in a
 * dict.
 */
#include "base/hot.h"
#include "bridges/numpy_pointers.h"
#include "bridges/numpy_range.h"
#include "record/demand.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TABLE_LOG2 = 9, TABLE_SIZE = 1 << TABLE_LOG2, TABLE_LIMIT = TABLE_SIZE * 3 / 4 };

/* All under the GIL, `slot` also under the lock. Entries stay for ever, so that a call in flight
 * outlives a detach. */
struct entry {
    PyObject *ufunc; /* the key; owned while attached */
    const opscope_op *op;
    opscope__vectorcall *slot;                                 /* NULL: not attached */
    const opscope_op *method_ops[OPSCOPE__UFUNC_METHOD_LIMIT]; /* each from its first call */
};

static struct entry table[TABLE_SIZE];
static size_t table_count;
static opscope__vectorcall original; /* NumPy's, the same for every ufunc attached; or the probe */

/* Taken with the GIL or without, and never held while Python runs. In a fork it comes where
 * listeners to demand do (record/process.c). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static opscope__vectorcall numpys; /* lock: `original`, and never the probe */
static bool is_wanted = true;      /* lock */
static bool is_frozen;             /* lock: the interpreter ends, nothing is changed any more */

/* ---- hot path ------------------------------------------------------------------------------- */

/* The ufunc's entry, or the free one where it belongs. */
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
    struct opscope__call call = {
        .vector = args, .vector_count = nargsf & ~offset_flag, .names = names};
    const opscope_range_info info = OPSCOPE__CALL_INFO(&call);
    opscope_range range;
    opscope__range_open_slow(&range, op, &info);
    return opscope__call_close(&range, original(ufunc, args, nargsf, names));
}

static OPSCOPE__HOT PyObject *trampoline(PyObject *ufunc, PyObject *const *args, size_t nargsf,
                                         PyObject *names)
{
    if (opscope__call_is_skipped()) {
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
        entry->method_ops[index] = opscope__numpy_op(name);
    }
    return entry->method_ops[index];
}

/* ---- replaced while wanted ------------------------------------------------------------------- */

static opscope__vectorcall trampoline_or(bool is_in)
{
    return is_in ? trampoline : numpys;
}

/* With the lock held. Partner: CPython's plain load at each call, which finds all it needs by
 * either pointer. */
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
        for (const struct entry *entry = table; entry < table + TABLE_SIZE; entry++) {
            if (entry->slot != NULL) {
                put(entry, is_in);
            }
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
    static const struct opscope__demand_listener listener = {follow_demand, fork_prepare, fork_done,
                                                             NULL};
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

static PyObject *probed; /* the ufunc that the last call of `probe` was for */

/* Stands in for NumPy's function while a fresh pointer is tried out. */
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

int opscope__ufunc_attach(const opscope_numpy_target *target, const struct opscope__pages *pages)
{
    PyObject *ufunc = (PyObject *)target->object;
    opscope__vectorcall *slot = opscope__ufunc_vectorcall(ufunc, pages);
    if (slot == NULL) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    struct entry *entry = find(ufunc);
    if (entry->slot != NULL || *slot == trampoline) {
        return OPSCOPE_ERR_BUSY;
    }
    if (original != NULL && *slot != original) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (entry->ufunc == NULL && table_count == TABLE_LIMIT) {
        return OPSCOPE_ERR_FULL;
    }
    const opscope_op *op = opscope__numpy_op(target->name);
    table_count += entry->ufunc == NULL;
    if (op != entry->op) {
        memset(entry->method_ops, 0, sizeof entry->method_ops);
    }
    entry->ufunc = ufunc;
    entry->op = op;
    original = *slot;
    *slot = trampoline;
    if (!call_arrives(ufunc)) {
        *slot = original;
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    Py_INCREF(ufunc);
    pthread_mutex_lock(&lock);
    numpys = original;
    entry->slot = slot;
    if (!is_wanted) {
        put(entry, false);
    }
    pthread_mutex_unlock(&lock);
    return OPSCOPE_OK;
}

void opscope__ufunc_detach(void)
{
    for (struct entry *entry = table; entry < table + TABLE_SIZE; entry++) {
        pthread_mutex_lock(&lock);
        const bool was_attached = entry->slot != NULL;
        if (was_attached) {
            put(entry, false);
            entry->slot = NULL;
        }
        pthread_mutex_unlock(&lock);
        if (was_attached) {
            Py_DECREF(entry->ufunc);
        }
    }
}
