/* private/blas.h -- calls of BLAS and LAPACK from C as ranges.
 *
 * The idea: a library calls a function of another library through a slot, a pointer in its own
 * memory that the loader has set to the function's address. The bridge replaces the slots of an
 * extension module that lead to a routine of the table (bridges/blas/routines.c) by trampolines.
 * A trampoline opens a range, calls the function that the slot led to, with the words that it got,
 * and closes the range. No code is changed, and no other library's slots.
 *
 * Why it is safe:
 * - A slot is replaced only if the module's relocations name the routine, the slot is in memory of
 *   the process, and the library that it leads to exports that name at that address. So versions
 *   of symbols and interposed libraries stay as the loader resolved them. A slot that the loader
 *   has not resolved yet, which it would overwrite, stays as it is.
 * - Trampolines pass words on, whatever the routine makes of them: all integer registers that carry
 *   arguments, two floating-point ones, and as many words of the stack as the longest signature
 *   has, including the hidden lengths of Fortran's texts. The names tell integers of 32 bits from
 *   those of 64. Before the first slot is replaced, a call through a trampoline to a function of
 *   the bridge shows that all words arrive.
 * - CPython never unloads an extension module, nor therefore a library that it needs. The bridge
 *   still holds a handle on both, so that no address dangles. A trampoline stays valid for ever:
 *   a program that copied a slot's value continues to work after the detach.
 * - The stores are atomic: a thread that calls meanwhile reaches the function either way. Pages
 *   that the loader has made read-only are writable during a store.
 * - Routines that call back into Python (those with a SELECT argument) are left out: f2py leaves
 *   them by longjmp.
 *
 * Calls of less than about a microsecond are not recorded (bridges/blas/routines.h), nor are
 * queries of a workspace's size, nor what the libraries call in themselves.
 *
 * Threads: the callers of attach and detach take turns; other threads may call BLAS meanwhile.
 * Forks: nothing to do, slots are per process. None of this needs the GIL.
 */
#ifndef OPSCOPE_PRIVATE_BLAS_H
#define OPSCOPE_PRIVATE_BLAS_H

#include <stddef.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef struct opscope_blas_slots {
    size_t replaced;   /* of this library; those replaced before included */
    size_t unresolved; /* left alone: the loader resolves them at their first call */
    size_t foreign;    /* left alone: the library they lead to does not export the name */
    size_t read_only;  /* left alone: their pages cannot be made writable */
    size_t full;       /* left alone: no trampoline is left, or memory ran out */
} opscope_blas_slots;

typedef struct opscope_blas_library {
    const char *path;         /* of an extension module, as it was loaded */
    opscope_blas_slots slots; /* result */
    int status;               /* result: OK; ERR_NOT_FOUND: the loader has no such library;
                                 ERR_UNSUPPORTED: an unexpected layout; ERR_NO_MEMORY. All but OK:
                                 it is as it was */
} opscope_blas_library;

/* Replaces the slots of each library. Repeating it adds those that were unresolved.
 * ERR_UNSUPPORTED: another machine, or trampolines do not pass all words on; ERR_IO or
 * ERR_NO_MEMORY: the process's memory map cannot be read. Nothing was changed then. */
OPSCOPE_API int opscope_blas_attach(opscope_blas_library *libraries, size_t count);
/* Restores each slot that still leads to a trampoline. Calls in flight finish normally. */
OPSCOPE_API void opscope_blas_detach(void);

OPSCOPE_END_DECLS

#endif
