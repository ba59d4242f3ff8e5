/* opscope/numpy.h -- the NumPy bridge: ufuncs and hot functions of NumPy as ranges.
 *
 * The idea: the bridge replaces C function pointers that CPython reads at every call (a ufunc's
 * vectorcall, a builtin's PyMethodDef.ml_meth, ndarray's mp_subscript) by trampolines that open a
 * range, call the original and close the range. One call is one range, whatever loops NumPy runs
 * inside; results, errors and warnings are the original's. Nothing of NumPy's layout is assumed,
 * and what is assumed of CPython's is checked at attach, for each pointer, by one call that comes
 * back before it reaches NumPy.
 *
 * Threads: any; each function takes the GIL, but opscope_numpy_freeze. Forks: nothing to do,
 * pointers are per process.
 */
#ifndef OPSCOPE_NUMPY_H
#define OPSCOPE_NUMPY_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef enum opscope_numpy_kind {
    OPSCOPE_NUMPY_UFUNC = 1,        /* calls of the ufunc `object` */
    OPSCOPE_NUMPY_FUNCTION = 2,     /* calls of the builtin `object`, a function or bound method;
                                       a method is observed on every array, not on this one only */
    OPSCOPE_NUMPY_UFUNC_METHOD = 3, /* `object` is a ufunc's bound method, as np.add.reduce; seen on
                                       every ufunc, named UFUNC.METHOD where the ufunc is attached
                                       and `name` where it is not; at most five */
    OPSCOPE_NUMPY_GETITEM = 4,      /* reading the array `object` and all like it with an index that
                                       is, or is a tuple with, an array or a list */
    OPSCOPE_NUMPY_SETITEM = 5       /* writing, likewise */
} opscope_numpy_kind;

typedef struct opscope_numpy_target {
    opscope_numpy_kind kind;
    uintptr_t object; /* a PyObject pointer, as id() gives it; borrowed */
    const char *name; /* of the operator; copied */
    int status;       /* filled in: OK; ERR_BUSY where it was attached before; ERR_FULL where no
                         trampoline is left; ERR_UNSUPPORTED where it is not as this code expects */
} opscope_numpy_target;

/* Attaches each target it can; the others stay as they were, their status says why. ERR_IO or
 * ERR_NO_MEMORY, and nothing is changed, where the process's memory map cannot be read. */
OPSCOPE_API int opscope_numpy_attach(opscope_numpy_target *targets, size_t count);
/* Restores every pointer that still points here. Calls in flight finish undisturbed. */
OPSCOPE_API void opscope_numpy_detach(void);
/* Those of ufuncs are replaced only while a callback wants operators, as the recorder's does in its
 * windows. From now on, as the interpreter ends, they stay as they are. */
OPSCOPE_API void opscope_numpy_freeze(void);
/* Lets traces know the shapes of arrays: `sample` is one of sizes 2 and 3, as id() gives it.
 * ERR_UNSUPPORTED where it is not laid out as this code expects. */
OPSCOPE_API int opscope_numpy_read_shapes(uintptr_t sample);
/* How many pointers are replaced now. */
OPSCOPE_API size_t opscope_numpy_attached_count(void);

OPSCOPE_END_DECLS

#endif
