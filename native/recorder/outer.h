/* recorder/outer.h -- outer ranges that a bridge reports to the recorder itself.
 *
 * An outer range is recorded whether a window is open or not, so small steps of a program pay for
 * it all the time. Most begin and end between two windows, while no callback but the recorder's
 * wants them. Such a range needs neither the record layer nor a frame: its key and its start are
 * enough to count it at its end. It gets a frame when the thread first notices a change of the
 * callbacks, which the opening of a window is: then it encloses what the window records.
 *
 * Owner of everything here: the thread of the range.
 */
#ifndef OPSCOPE_RECORDER_OUTER_H
#define OPSCOPE_RECORDER_OUTER_H

#include "opscope/record.h"

struct opscope__frame;
struct opscope__thread;

struct opscope__outer_range {
    uint64_t key; /* of its cell */
    uint64_t start_ticks;
    uint64_t child_ticks; /* of the ranges directly inside that have ended */
    union {
        struct opscope__outer_range *around; /* the enclosing one without a frame; NULL: none */
        struct opscope__frame *frame;        /* NULL: no room */
    };
    opscope_range *range; /* the caller's; identifies the frame */
    uint32_t epoch;       /* of the segment */
    bool is_unframed;     /* it has no frame yet, so `around` is set; otherwise `frame` is */
};

/* Begins an outer range of this thread, at `start_ticks` of the processor's counter. `range` is
 * only used as an address, and lives as long. False if it must be opened as other ranges are
 * (opscope__range_open_slow), because other callbacks may want it. */
OPSCOPE_API bool opscope__outer_begin(struct opscope__outer_range *outer, opscope_range *range,
                                      const opscope_op *op, uint64_t start_ticks);
/* Ends it. Ranges inside that have not ended are dropped. */
OPSCOPE_API void opscope__outer_end(struct opscope__outer_range *outer, bool failed);
/* Ends it without counting it; the caller counts it as dropped. */
OPSCOPE_API void opscope__outer_lose(struct opscope__outer_range *outer);

/* One will soon begin on this thread, or that one end: fetches what that needs (base/fetch.h). */
OPSCOPE_API void opscope__outer_will_begin(void);
OPSCOPE_API void opscope__outer_will_end(const struct opscope__outer_range *outer);

/* For the recorder: the thread has noticed a change of the callbacks. */
void opscope__outer_refresh(const struct opscope__thread *thread);

#endif
