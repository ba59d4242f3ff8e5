/* record/recorder_state.h -- what the recorder keeps: once for the process, and for each thread. */
#ifndef OPSCOPE_RECORD_RECORDER_STATE_H
#define OPSCOPE_RECORD_RECORDER_STATE_H

#include "base/atomics.h"
#include "record/governor.h"
#include "record/recorder.h"
#include "record/segment.h"
#include "record/settings.h"
#include "record/table.h"

enum { OPSCOPE__FRAME_LIMIT = 256, OPSCOPE__DIRECTORY_BYTES = 160, OTHER_OP_ID = 1 };

#define OPSCOPE__WEIGHT_ONE ((uint64_t)1 << OPSCOPE_SEGMENT_WEIGHT_LOG2)

/* An open range: eight words, so that its place is a shift away. Owner: the thread that opened it.
 */
struct opscope__frame {
    const opscope_range *range; /* to know it again at the end */
    uint64_t key;               /* of its cell */
    uint64_t weight;            /* units of 2^-16 */
    uint64_t serial;            /* of the recorder, at the start */
    uint64_t start_ticks;
    uint64_t child_ticks; /* durations of the ranges directly within */
    uint64_t epoch;       /* of an async range only: of the segment it started in */
    uint64_t is_lost;     /* counted as dropped already: see opscope__recorder_lose */
};

/* Owner: the thread. */
struct opscope__recorder_thread {
    uint32_t epoch;       /* of the segment its table is in; 0: it has no table */
    uint32_t tried_epoch; /* of the segment that had no room for a table */
    opscope__table *table;
    opscope_segment_header *header;
    struct opscope__frame *top; /* the frame for the next range */
    uint64_t look_ticks;        /* when to look at the control block again (record/control.h) */
    uint32_t label_epoch;       /* of the recorder's, when labels were last looked up */
    struct opscope__frame
        frames[1 + OPSCOPE__FRAME_LIMIT]; /* the first stands below the outermost */
    uint64_t bytes_rest; /* of weighted bytes: units of 2^-16 not yet in any cell */
};

struct opscope__recorder {
    /* Read on the hot path; relaxed. A change reaches threads a little later, which is all right:
     * the weight and the serial of a range are both taken at its start. */
    uint64_t weight;         /* of a range that starts now; 0: do not record */
    uint64_t serial;         /* from 1: goes up whenever ranges begin or cease to be all recorded */
    uint64_t whole_serial;   /* `serial` while all are, so that self times are known; else 0 */
    uint64_t units_per_tick; /* 2^-40 s in a tick, times 2^32; written before the first range */
    uint64_t look_period_ticks;  /* likewise: from look to look of a thread */
    uint64_t seen_serial;        /* of the control block, when it was last looked at; relaxed */
    uint64_t governor_due_ticks; /* when the governor is to look next; relaxed */
    uint32_t label_epoch;        /* goes up when label sets have other ids: relaxed; segment lock */

    /* Segment lock. */
    opscope__segment segment;
    opscope__table *free_tables;
    uint32_t table_count;
    size_t usage_count; /* API-usage keys written so far, of all that were said */
    bool is_pending;    /* forked: this process has yet to make its segment */

    /* Settings lock. */
    bool is_running;
    struct opscope__settings configured;
    opscope_control inherited;       /* from the settings file, or the parent */
    opscope_control block;           /* the last one taken */
    struct opscope__settings wanted; /* all three together */
    opscope__governor governor;
    uint64_t seen_settings_serial;
    uint64_t seen_trace_serial;
    uint32_t scopes;
    uint64_t record_cost_ps;
    char directory[OPSCOPE__DIRECTORY_BYTES];

    /* Both locks to write, either to read: what is in force. */
    opscope_handle handle;
    bool is_off;                       /* nothing is recorded */
    struct opscope__sampling sampling; /* else; as wanted, or less for the governor's sake */
};

extern struct opscope__recorder opscope__recorder;

/* With the segment lock held: label sets have to be looked up again. */
static inline void opscope__labels_forget(struct opscope__recorder *recorder)
{
    /* Partner: the loads in record/recorder.c, on threads that look a moment late. */
    opscope__store_relaxed(&recorder->label_epoch, recorder->label_epoch + 1);
}

/* record/recorder.c: the callback. */
int opscope__recorder_range_start(const opscope_range *fn, void *user, void **context);
int opscope__recorder_range_end(const opscope_range *fn, void *user, void *context);

/* record/recorder_thread.c. Cold: the thread's state, with a table in the segment of now; NULL
 * where there is no room for one (the range is then counted as dropped). */
struct opscope__recorder_thread *opscope__recorder_thread_open(struct opscope__thread *thread);
/* Counts a range that could not be recorded. */
void opscope__recorder_drop(struct opscope__recorder_thread *state);
/* Takes off the frames from `first` on, whose ends came late or never: counted as dropped. */
void opscope__recorder_unwind(struct opscope__recorder_thread *state, struct opscope__frame *first);

/* record/recorder_life.c. With the segment lock held: the segment of a forked child. */
void opscope__recorder_resume(void);

/* record/notes.c: the facts about the process, kept to be written into every segment it makes.
 * With the segment lock held. */
int opscope__notes_set(opscope__segment *segment, const char *key, const char *value);
void opscope__notes_write_all(opscope__segment *segment);

#endif
