/* private/numpy.h -- the NumPy bridge: ufuncs and hot functions of NumPy as ranges.
 *
 * The idea: CPython reads some C function pointers at every call: a ufunc's vectorcall, a builtin's
 * PyMethodDef.ml_meth, ndarray's mp_subscript. The bridge replaces them by trampolines that open a
 * range, call the original and close the range. One call is one range, whatever loops NumPy runs
 * inside; results, errors and warnings are the original's. The bridge assumes nothing about NumPy's
 * layout. At attach it verifies its assumptions about CPython's layout, for each pointer, by one
 * call that returns before it reaches NumPy.
 *
 * Threads: any. attach and detach take the GIL; callers make them take turns, as the GIL does not
 * exist in every Python, and attaching runs Python. Threads may call NumPy meanwhile. Forks:
 * nothing to do, pointers are per process.
 */
#ifndef OPSCOPE_PRIVATE_NUMPY_H
#define OPSCOPE_PRIVATE_NUMPY_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef enum opscope_numpy_kind {
    OPSCOPE_NUMPY_UFUNC = 1,    /* calls of the ufunc `object` */
    OPSCOPE_NUMPY_FUNCTION = 2, /* calls of the builtin `object`, a function or bound method; a
                                   method is observed on every array, not only on this one */
    /* `object` is a bound method of a ufunc, such as np.add.reduce. It is observed on every ufunc:
     * under the name UFUNC.METHOD if the ufunc is attached, else under `name`. At most five. */
    OPSCOPE_NUMPY_UFUNC_METHOD = 3,
    OPSCOPE_NUMPY_GETITEM = 4, /* reads of the array `object`, and of all arrays of its type, with
                                  an index that is or contains an array or a list */
    OPSCOPE_NUMPY_SETITEM = 5  /* writes, likewise */
} opscope_numpy_kind;

typedef struct opscope_numpy_target {
    opscope_numpy_kind kind;
    uintptr_t object; /* a PyObject pointer, as id() gives it; borrowed */
    const char *name; /* of the operator; copied */
    int status;       /* result: OK; ERR_BUSY: attached before; ERR_FULL: no trampoline left;
                         ERR_UNSUPPORTED: an unexpected layout */
} opscope_numpy_target;

/* Attaches each target it can; the others stay unchanged, and their status gives the reason. If the
 * process's memory map cannot be read, it changes nothing and returns ERR_IO or ERR_NO_MEMORY. */
OPSCOPE_API int opscope_numpy_attach(opscope_numpy_target *targets, size_t count);
/* Restores every pointer that still points to a trampoline. Calls in flight finish normally. */
OPSCOPE_API void opscope_numpy_detach(void);
/* Call it when the interpreter ends: the bridge then leaves the ufuncs' pointers as they are.
 * Before that it replaces them only while a callback needs operators, as the recorder's does in its
 * windows. */
OPSCOPE_API void opscope_numpy_freeze(void);
/* From now on attaches each ufunc that an extension module makes, until the detach: those of other
 * packages than NumPy. `capsule` is NumPy's `_UFUNC_API`, `ufunc` one that is attached.
 * ERR_UNSUPPORTED if its layout is unexpected. */
OPSCOPE_API int opscope_numpy_follow_ufuncs(uintptr_t capsule, uintptr_t ufunc);
/* Attaches one that exists already; `library` is the path of the extension module that made it. OK,
 * or a status as of a target. */
OPSCOPE_API int opscope_numpy_adopt_ufunc(uintptr_t ufunc, const char *library);
/* Enables shapes of arrays in traces: `sample` is an array of sizes 2 and 3, as id() gives it.
 * ERR_UNSUPPORTED if its layout is unexpected. */
OPSCOPE_API int opscope_numpy_read_shapes(uintptr_t sample);
/* The number of pointers that are replaced now. */
OPSCOPE_API size_t opscope_numpy_attached_count(void);

OPSCOPE_END_DECLS

#endif
