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

/* Attaches each object it can: a builtin, a method of a type, a function of Cython's, or an object
 * of a type of functions (f2py, ctypes, Numba), whose code is in its library. `objects` has
 * PyObject pointers, as id() gives them. `names` has the operators' names, one string after the
 * other, and `libraries` likewise the paths of the extension modules that have the code, or "" for
 * any. A module also holds functions of others, and of the interpreter, which recognises some of
 * its own by their pointers; so only objects that are known one by one may have any library.
 *
 * The others stay unchanged, and their status gives the reason: ERR_BUSY: attached before;
 * ERR_FULL: no trampoline left; ERR_UNSUPPORTED: an unexpected layout or kind of object;
 * ERR_INVALID: a function of another library. If the process's memory map cannot be read, it
 * changes nothing and returns ERR_IO or ERR_NO_MEMORY; one call for many objects reads it once. */
OPSCOPE_API int opscope_extension_attach(uint32_t owner, size_t count, const uintptr_t *objects,
                                         const char *names, const char *libraries, int *statuses);
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
