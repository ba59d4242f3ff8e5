/* pointer.h -- replacing a pointer that the interpreter reads at each call.
 *
 * The program's threads run meanwhile: without the GIL, a thread may call through a pointer at any
 * moment. So whatever a trampoline needs is complete, and published, before a pointer leads to it,
 * and is never taken back.
 */
#ifndef OPSCOPE_BRIDGES_POINTER_H
#define OPSCOPE_BRIDGES_POINTER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/atomics.h"
#include "base/fence.h"

/* Makes what attach wrote visible to each thread that follows a pointer replaced after this. The
 * thread orders nothing itself, because CPython loads the pointer. The GIL needs no fence: a thread
 * takes it after attach has let it go. */
static inline void opscope__pointer_publish(void)
{
#ifdef Py_GIL_DISABLED
    opscope__fence_heavy();
#endif
}

/* Replaces `*place` if it still is `expected`, with the order of a release. Partner: CPython's
 * plain load at each call; either pointer is complete for the call. */
#define OPSCOPE__REPLACE_POINTER(place, expected, value)                                           \
    ({                                                                                             \
        __typeof__(*(place)) expected_ = (expected);                                               \
        opscope__replace_release((place), &expected_, (value));                                    \
    })

#endif
