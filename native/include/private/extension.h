/* private/extension.h -- functions of extension modules as ranges.
 *
 * The idea: the call of a function that C code defines goes through a pointer that the interpreter,
 * Cython or f2py reads at each call. A bridge replaces it by a trampoline that opens a range, calls
 * the original and closes the range. Nothing is assumed of what the function does: its results,
 * errors and warnings are its own. Each pointer is verified as it is attached, by a call that
 * returns before it reaches the function.
 *
 * Threads: any; each function takes the GIL. Forks: nothing to do, pointers are per process.
 */
#ifndef OPSCOPE_PRIVATE_EXTENSION_H
#define OPSCOPE_PRIVATE_EXTENSION_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* The owner of the pointers that NumPy's bridge replaces; other bridges have numbers above. */
enum { OPSCOPE_EXTENSION_NUMPY = 0 };

typedef struct opscope_extension_target {
    uintptr_t object;    /* a PyObject pointer, as id() gives it; borrowed */
    const char *name;    /* of the operator; copied */
    const char *library; /* the path of the extension module that has the code; NULL: any */
    int status;          /* result: OK; ERR_BUSY: attached before; ERR_FULL: no trampoline left;
                            ERR_UNSUPPORTED: an unexpected layout or kind of object;
                            ERR_INVALID: a function of another library */
} opscope_extension_target;

/* Attaches each target it can: a builtin, a method of a type, a function of Cython's, or an object
 * of a type of functions (f2py, ctypes, Numba), whose code is in its library. A module also holds
 * functions of others, and of the interpreter, which recognises some of its own by their pointers;
 * so only targets that are known one by one may have any library. The others stay unchanged, and
 * their status gives the reason. If the process's memory map cannot be read, it changes nothing and
 * returns ERR_IO or ERR_NO_MEMORY; one call for many targets reads it once. */
OPSCOPE_API int opscope_extension_attach(uint32_t owner, opscope_extension_target *targets,
                                         size_t count);
/* Puts an outer range around a method that the class `type` (a pointer as id() gives it) has itself
 * and that is written in Python. The operator is called `name`, or, if that ends in "::", `name`
 * and the class of the method's object and the method. ERR_INVALID: there is no such method;
 * ERR_BUSY: attached before; ERR_NO_MEMORY. */
OPSCOPE_API int opscope_outer_attach(uint32_t owner, uintptr_t type, const char *method,
                                     const char *name);
/* Restores the owner's methods, and its pointers that still point to a trampoline. Calls in flight
 * finish normally. */
OPSCOPE_API void opscope_extension_detach(uint32_t owner);

OPSCOPE_END_DECLS

#endif
