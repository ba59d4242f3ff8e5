/* numpy/ufunc_maker.c -- the ufuncs that other packages make.
 *
 * An extension module makes a ufunc by a call through a table of functions, which NumPy publishes
 * as the capsule `_UFUNC_API`. The positions in it are a part of NumPy's interface for compiled
 * modules and never change. The bridge replaces those of the three functions that make a ufunc, so
 * that it sees each one, whatever the package, and names it after the library that made the call:
 * one of scipy/special/_ufuncs is called `scipy::special.NAME`. Those of NumPy's own modules are
 * left to the list in Python. np.frompyfunc does not use the table.
 *
 * Attached ufuncs are owned. So a program that makes ufuncs all the time keeps those for which the
 * bridge has room, at most some 1,500 (numpy/ufunc.c).
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bridges/library.h"
#include "bridges/numpy/pointers.h"

enum { NAME_BYTES = 256 };

typedef PyObject *(*maker)(void *functions, void *data, const char *types, int type_count,
                           int in_count, int out_count, int identity, const char *name,
                           const char *doc, int unused);
typedef PyObject *(*signature_maker)(void *functions, void *data, const char *types, int type_count,
                                     int in_count, int out_count, int identity, const char *name,
                                     const char *doc, int unused, const char *signature);
typedef PyObject *(*identity_maker)(void *functions, void *data, const char *types, int type_count,
                                    int in_count, int out_count, int identity, const char *name,
                                    const char *doc, int unused, const char *signature,
                                    PyObject *identity_value);

/* Positions in NumPy's table. */
enum { TYPE_AT = 0, MAKER_AT = 1, SIGNATURE_MAKER_AT = 31, IDENTITY_MAKER_AT = 42 };

/* The GIL guards all of this. */
static void **table; /* NULL: not attached before */
static maker original_maker;
static signature_maker original_signature_maker;
static identity_maker original_identity_maker;

/* ---- names ---------------------------------------------------------------------------------- */

/* The path of a library below an entry of sys.path: the longest of those that it begins with. NULL:
 * it begins with none. */
static const char *below_search_path(const char *path)
{
    PyObject *entries = PySys_GetObject("path");
    const Py_ssize_t count = entries != NULL && PyList_Check(entries) ? PyList_Size(entries) : 0;
    size_t longest = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *entry = PyList_GetItem(entries, i);
        Py_ssize_t size = 0;
        const char *text = PyUnicode_Check(entry) ? PyUnicode_AsUTF8AndSize(entry, &size) : NULL;
        if (text == NULL) {
            PyErr_Clear();
            continue;
        }
        size_t bytes = (size_t)size;
        while (bytes != 0 && text[bytes - 1] == '/') {
            bytes--;
        }
        if (bytes > longest && strncmp(path, text, bytes) == 0 && path[bytes] == '/') {
            longest = bytes;
        }
    }
    return longest != 0 ? path + longest + 1 : NULL;
}

/* The path of a library below the directory of packages, or its file alone. */
static const char *below_packages(const char *path)
{
    static const char end[] = "-packages/"; /* of site-packages and dist-packages */
    const char *below = below_search_path(path);
    if (below != NULL) {
        return below;
    }
    const char *found = strstr(path, end);
    const char *file = strrchr(path, '/');
    if (found != NULL) {
        return found + sizeof end - 1;
    }
    return file != NULL ? file + 1 : path;
}

/* `scipy/special/_ufuncs.cpython-311.so` and `gamma` are `scipy::special.gamma`. False: the name is
 * too long, or the library is one of NumPy's. */
static bool operator_name(const char *path, const char *ufunc, char *name)
{
    const char *at = below_packages(path);
    if (strncmp(at, "numpy/", 6) == 0) {
        return false;
    }
    size_t used = 0;
    const char *separator = "::";
    for (;;) {
        const size_t bytes = strcspn(at, "/.");
        const bool is_file = at[bytes] != '/';
        /* Private names say nothing to users, unless there is nothing else. */
        const bool is_left_out = used != 0 && at[0] == '_';
        if (!is_left_out) {
            const size_t skipped = used == 0 ? strspn(at, "_") : 0;
            if (used + bytes + 2 >= NAME_BYTES || skipped >= bytes) {
                return false;
            }
            memcpy(name + used, at + skipped, bytes - skipped);
            used += bytes - skipped;
            memcpy(name + used, separator, strlen(separator));
            used += strlen(separator);
            separator = ".";
        }
        if (is_file) {
            break;
        }
        at += bytes + 1;
    }
    return (size_t)snprintf(name + used, NAME_BYTES - used, "%s", ufunc) < NAME_BYTES - used;
}

int opscope__ufunc_adopt_from(PyObject *ufunc, const char *library)
{
    PyObject *own = PyObject_GetAttrString(ufunc, "__name__");
    const char *text =
        own != NULL && PyUnicode_Check(own) ? PyUnicode_AsUTF8AndSize(own, NULL) : NULL;
    char name[NAME_BYTES];
    const int status = text != NULL && operator_name(library, text, name)
                           ? opscope__ufunc_adopt(ufunc, name)
                           : OPSCOPE_ERR_UNSUPPORTED;
    Py_XDECREF(own);
    PyErr_Clear();
    return status;
}

/* ---- makers --------------------------------------------------------------------------------- */

static PyObject *made(PyObject *ufunc, void *caller)
{
    const char *library = ufunc != NULL ? opscope__library_of(caller) : NULL;
    if (library != NULL) {
        (void)opscope__ufunc_adopt_from(ufunc, library);
    }
    return ufunc;
}

static PyObject *make(void *functions, void *data, const char *types, int type_count, int in_count,
                      int out_count, int identity, const char *name, const char *doc, int unused)
{
    return made(original_maker(functions, data, types, type_count, in_count, out_count, identity,
                               name, doc, unused),
                __builtin_return_address(0));
}

static PyObject *make_with_signature(void *functions, void *data, const char *types, int type_count,
                                     int in_count, int out_count, int identity, const char *name,
                                     const char *doc, int unused, const char *signature)
{
    return made(original_signature_maker(functions, data, types, type_count, in_count, out_count,
                                         identity, name, doc, unused, signature),
                __builtin_return_address(0));
}

static PyObject *make_with_identity(void *functions, void *data, const char *types, int type_count,
                                    int in_count, int out_count, int identity, const char *name,
                                    const char *doc, int unused, const char *signature,
                                    PyObject *identity_value)
{
    return made(original_identity_maker(functions, data, types, type_count, in_count, out_count,
                                        identity, name, doc, unused, signature, identity_value),
                __builtin_return_address(0));
}

/* ---- attach and detach ---------------------------------------------------------------------- */

static const struct {
    size_t at;
    void *ours;
    void **original;
} places[] = {
    {MAKER_AT, (void *)make, (void **)&original_maker},
    {SIGNATURE_MAKER_AT, (void *)make_with_signature, (void **)&original_signature_maker},
    {IDENTITY_MAKER_AT, (void *)make_with_identity, (void **)&original_identity_maker},
};
enum { PLACE_COUNT = sizeof places / sizeof *places };

/* Whether this is NumPy's table: it begins with the type of ufuncs, and has functions where the
 * makers are. */
static bool is_table(void **candidate, PyObject *ufunc, const struct opscope__pages *pages)
{
    const size_t bytes = (IDENTITY_MAKER_AT + 1) * sizeof *candidate;
    if (!opscope__pages_grant(pages, candidate, bytes, PROT_READ | PROT_WRITE) ||
        candidate[TYPE_AT] != (void *)Py_TYPE(ufunc)) {
        return false;
    }
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        if (!opscope__pages_grant(pages, candidate[places[i].at], 1, PROT_EXEC)) {
            return false;
        }
    }
    return true;
}

int opscope__ufunc_makers_attach(PyObject *capsule, PyObject *ufunc,
                                 const struct opscope__pages *pages)
{
    void **candidate = PyCapsule_CheckExact(capsule)
                           ? PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
                           : NULL;
    PyErr_Clear();
#ifdef Py_GIL_DISABLED
    candidate = NULL; /* threads that make ufuncs at the same time would need a lock */
#endif
    if (candidate == NULL || !is_table(candidate, ufunc, pages)) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    table = candidate;
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        void **place = &table[places[i].at];
        if (*place != places[i].ours) {
            *places[i].original = *place;
            *place = places[i].ours;
        }
    }
    return OPSCOPE_OK;
}

void opscope__ufunc_makers_detach(void)
{
    for (size_t i = 0; table != NULL && i < PLACE_COUNT; i++) {
        void **place = &table[places[i].at];
        if (*place == places[i].ours) {
            *place = *places[i].original;
        }
    }
}
