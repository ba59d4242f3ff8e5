/* private/interpreter.h -- builtins of Python that run while the process has no thread of ours. */
#ifndef OPSCOPE_PRIVATE_INTERPRETER_H
#define OPSCOPE_PRIVATE_INTERPRETER_H

#include <stddef.h>
#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

/* From now on each call of the builtin, on the main thread, runs without the thread that opens
 * windows if its flags need that. `builtin`: a PyObject pointer, as id() gives it; borrowed.
 * `flags_at`: the index of the flags of unshare(2) among its arguments. OK, also for a builtin that
 * does so already; ERR_FULL for a third one; ERR_UNSUPPORTED for another layout or calling
 * convention; ERR_IO or ERR_NO_MEMORY if the process's memory map cannot be read. Takes the GIL. */
OPSCOPE_API int opscope_interpreter_call_alone(uintptr_t builtin, size_t flags_at);

OPSCOPE_END_DECLS

#endif
