/* private/marks.h -- ranges that libraries mark through NVTX or ITT as ranges.
 *
 * NVTX and ITT are small parts of the libraries that use them, their clients. At its first mark, a
 * client loads the library that an environment variable names, and gives it the places of its
 * functions. The bridge names libopscope_marks.so (bridges/marks/library/injected.c) there, which
 * hands the client on to the bridge; it fills the places in (bridges/marks/nvtx.c, itt.c). From
 * then on a push opens a range on its thread, and a pop closes it (bridges/marks/range.c). A start
 * opens a range that its end closes on any thread (bridges/marks/moving.c).
 *
 * What that means for a program, and why it is a setting:
 * - A client without a tool skips its marks, and often what it does for them, such as composing
 *   their names. With this bridge it does that work, also between windows and after a detach.
 * - There is one tool for a process. A variable that is set stays as it is, and the bridge stands
 *   down; a tool that comes after the bridge finds it set.
 * - The variable is set in the process's environment in C alone: os.environ does not show it.
 *   Children may inherit it. There the library loads and refuses, without a word.
 * - setenv() is safe only if no other thread reads the environment. The bridge sets the variable
 *   only while the process has a single thread, or else stands down.
 *
 * Threads: attach and detach take turns; marks come from any thread. Forks: nothing to do.
 */
#ifndef OPSCOPE_PRIVATE_MARKS_H
#define OPSCOPE_PRIVATE_MARKS_H

#include <stdint.h>

#include "opscope/status.h"

OPSCOPE_BEGIN_DECLS

typedef enum opscope_marks_kind {
    OPSCOPE_MARKS_NVTX = 0,
    OPSCOPE_MARKS_ITT = 1,
    OPSCOPE_MARKS_KIND_COUNT = 2
} opscope_marks_kind;

/* Follows the marks of all clients that begin from now on, and of those that began with the bridge
 * attached before. `library` is the path of libopscope_marks.so. ERR_NOT_FOUND: it cannot be
 * loaded; ERR_BUSY: the environment variable names another library; ERR_WOULD_DEADLOCK: other
 * threads run, so the environment cannot be changed; ERR_NO_MEMORY. Nothing was changed then. */
OPSCOPE_API int opscope_marks_attach(opscope_marks_kind kind, const char *library);
/* Ranges that are open end as usual. Removes the variable if no other thread runs. */
OPSCOPE_API void opscope_marks_detach(opscope_marks_kind kind);
/* How many clients have begun with the bridge. */
OPSCOPE_API uint32_t opscope_marks_clients(opscope_marks_kind kind);

OPSCOPE_END_DECLS

#endif
