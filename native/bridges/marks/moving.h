/* marks/moving.h -- marked ranges that may end on any thread and overlap others: NVTX's ranges with
 * a start and an end, which have ids of the bridge, and ITT's overlapped tasks, which have ids of
 * the program.
 *
 * All functions may be called from any thread at any time. A range that is open when detaching ends
 * as usual. A range that never ends stays in the table and is not recorded. A child of a fork may
 * end what was open at the fork, as its parent may; the recorder counts it in the parent.
 */
#ifndef OPSCOPE_BRIDGES_MARKS_MOVING_H
#define OPSCOPE_BRIDGES_MARKS_MOVING_H

#include <stdint.h>
#include <wchar.h>

#include "bridges/marks/itt_abi.h"
#include "private/marks.h"

enum {
    /* Open ranges of both kinds; further ones are refused. A power of two. Refused ranges are among
     * the recorder's dropped ones. */
    OPSCOPE__MARKS_MOVING_LIMIT = 4096
};

/* Opens a range with that name; NULL: unnamed. Returns its id, which no later range has; 0: it is
 * not followed, no callback observes it, or it is refused. */
uint64_t opscope__marks_start(opscope_marks_kind kind, const char *name);
uint64_t opscope__marks_start_wide(opscope_marks_kind kind, const wchar_t *name);
/* Closes the range; does nothing if no range with that id is open. */
void opscope__marks_end(uint64_t id);

/* The same for a task of ITT, by its domain and id. Refuses the null id, and an id that is open in
 * that domain. If two threads begin one id at once, both may succeed; each end then ends one. */
void opscope__marks_begin_task(const void *domain, const struct opscope__itt_id *id,
                               const char *name);
void opscope__marks_end_task(const void *domain, const struct opscope__itt_id *id);

#endif
