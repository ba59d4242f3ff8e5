/* recorder/state.h -- the recorder's state, one for the process and one for each thread. */
#ifndef OPSCOPE_RECORDER_STATE_H
#define OPSCOPE_RECORDER_STATE_H

#include "base/atomics.h"
#include "base/hot.h"
#include "opscope/recorder.h"
#include "record/thread.h"
#include "recorder/governor.h"
#include "recorder/settings.h"
#include "segment/segment.h"
#include "segment/table.h"

enum { OPSCOPE__FRAME_LIMIT = 256, OPSCOPE__DIRECTORY_BYTES = 160 };
/* How often threads poll the control block: the window thread, and threads that record. */
enum { OPSCOPE__POLL_NS = 250000000, OPSCOPE__POLLS_PER_SECOND = 10 };

#define OPSCOPE__WEIGHT_ONE ((uint64_t)1 << OPSCOPE_SEGMENT_WEIGHT_LOG2)
enum { OPSCOPE__COST_FACTOR_LOG2 = 10 };
/* Serials of a frame whose range is recorded inside and outside windows, and of an async one at its
 * end: even, and none of the recorder's. */
#define OPSCOPE__OUTER (UINT64_MAX - 1)
#define OPSCOPE__NO_SERIAL (UINT64_MAX - 3)

/* An open range: eight words, so that a shift gives its address. Owner: the thread that opened
 * it. */
struct opscope__frame {
    const opscope_range *range; /* identifies the range at its end */
    uint64_t key;               /* of its cell */
    uint64_t weight;            /* units of 2^-16; 0: it only encloses others and is in no cell */
    uint64_t serial;            /* of the recorder, at the start; or OPSCOPE__OUTER */
    uint64_t start_ticks; /* on the thread's clock without recording; of an async or outer range, on
                             the processor's */
    uint64_t child_ticks; /* durations of the ranges directly inside; for an outer range, of outer
                             ones and those observed in windows, times their weights */
    uint64_t exact_ticks; /* of an outer range: what of child_ticks is of outer ranges; unused by
                             others */
    uint32_t epoch;   /* of an async range: the epoch of the segment it started in; of an outer one:
                         the recorder's serial at its start, modulo 2^32 */
    uint32_t is_lost; /* already counted as dropped: see opscope__recorder_lose */
};

/* Owner: the thread. */
struct opscope__recorder_thread {
    uint32_t epoch;       /* of the segment with its table; 0: it has no table */
    uint32_t tried_epoch; /* of the segment that had no room for a table */
    opscope__table *table;
    opscope_segment_header *header;
    struct opscope__frame *top; /* the frame of the next range */
    uint64_t cost_ticks; /* estimated, of recording this thread's ranges so far: what its clock is
                            behind the processor's */
    uint64_t last_ticks; /* of that clock, at the last end of a range: it is never less */
    uint64_t inner_end_ticks; /* likewise, at the end before: of a range inside, if there was any */
    uint64_t next_poll_ticks; /* time of the next poll of the control block (recorder/control.h) */
    uint32_t label_epoch;     /* the recorder's label_epoch at the last look-up of labels */
    struct opscope__outer_range *unframed; /* see recorder/outer.h: the innermost without a frame */
    uint64_t outer_version; /* of the callbacks, while outer ranges need no other than ours; 0: they
                               were not looked at */
    struct opscope__frame
        frames[1 + OPSCOPE__FRAME_LIMIT]; /* the first is a sentinel below the outermost */
    uint64_t bytes_rest;                  /* of weighted bytes: units of 2^-16 not yet in a cell */
};

struct opscope__recorder;

/* Functions that parts of the recorder call in the parts above them. They live as long as the
 * process. */
struct opscope__recorder_hooks {
    /* With the segment lock held: a forked child has made its segment. */
    void (*resume)(void);
    /* A range starts while recorder->awaits_range is set, without locks: the window driver is
     * needed now. */
    void (*first_range)(struct opscope__recorder *recorder);
    /* The functions of that name in recorder/control.h. */
    void (*apply)(void);
    uint64_t (*poll)(const opscope_segment_header *header, uint64_t now_ticks);
    bool (*is_news)(void);
};

struct opscope__recorder {
    const struct opscope__recorder_hooks *hooks; /* set in a constructor */
    /* Read on the hot path; relaxed. A change may reach a thread slightly late, which is correct: a
     * range takes both its weight and its serial at its start. */
    uint64_t is_open;    /* ranges are recorded: always, or while a window is open */
    uint64_t weights[2]; /* of a range that starts now: on a thread known from earlier windows,
                            and on a new one. 0: it only encloses others */
    uint64_t
        unseen_phase_bits; /* phase around a range without a recorded parent, as in a cell's key: 0,
                              or unknown if sampling may leave out an enclosing range */
    uint64_t serial; /* grows whenever complete recording of ranges begins or ends: odd while all
                        ranges are recorded. When that ends, it grows by 1; when it begins, by 3 */
    uint64_t whole_serial; /* equals `serial` while all ranges are recorded, so that self times are
                              known; else 0 */
    uint64_t units_per_tick;    /* 2^-40 s in a tick, times 2^32; written before the first range */
    uint64_t poll_period_ticks; /* likewise: time between two polls of a thread */
    uint64_t seen_serial;       /* of the control block at the last poll; relaxed */
    uint64_t
        awaits_range; /* the window thread must not start before the program's first range: with
                         windows, or while nothing is recorded, that range starts the thread */
    uint64_t governor_due_ticks; /* time of the governor's next poll; relaxed */
    uint64_t cost_factor;  /* by which recording costs more in this program than in loops, times
                              2^OPSCOPE__COST_FACTOR_LOG2; 0: durations contain the cost */
    uint64_t long_ticks;   /* ranges, and gaps between two, beyond this may contain a stop; relaxed.
                              UINT64_MAX: that is not measured (recorder/off_cpu.h) */
    uint64_t closed_ticks; /* when the last window closed; relaxed */
    uint32_t label_epoch;  /* increases when label sets get other ids; relaxed; segment lock */

    /* Segment lock. */
    opscope__segment segment;
    opscope__table *free_tables;
    uint32_t table_count;
    /* By table: whether a new thread had it when the last window opened, or nobody, so that a new
     * one takes it. What was recorded there since is then of new threads. */
    bool is_of_new[OPSCOPE_SEGMENT_CHUNK_LIMIT];
    size_t usage_count; /* API-usage keys written so far */
    bool is_pending;    /* forked: this process has not made its segment yet */

    /* Settings lock. */
    bool is_running;
    struct opscope__settings configured;
    opscope_control inherited;       /* from the settings file or the parent */
    opscope_control block;           /* the last one applied */
    struct opscope__settings wanted; /* all three combined */
    opscope__governor governor;
    uint64_t seen_settings_serial;
    uint64_t seen_trace_serial;
    uint32_t scopes;
    uint64_t record_cost_ps;
    char directory[OPSCOPE__DIRECTORY_BYTES];

    /* Both locks to write, either to read: the settings in force. */
    opscope_handle handle;
    opscope_handle outer_handle; /* of the callback that follows outer ranges; 0: none */
    opscope_handle count_handle; /* of the callback that counts some ranges before a window; 0:
                                    none */
    bool is_off;                 /* nothing is recorded */
    bool spares_outer;           /* settings lock: outer ranges are too frequent to follow */
    struct opscope__sampling sampling; /* otherwise; as wanted, or reduced by the governor */
};

extern OPSCOPE__INTERNAL struct opscope__recorder opscope__recorder;

/* Serialises starts, stops and changes of settings; taken before every other lock. */
void opscope__settings_lock(void);
/* False if any thread, including this one, holds the lock. */
bool opscope__settings_trylock(void);
void opscope__settings_unlock(void);

/* With the segment lock held: threads must look up label sets again. */
static inline void opscope__labels_forget(struct opscope__recorder *recorder)
{
    /* Partner: the loads in recorder/recorder.c; a thread may see it slightly late. */
    opscope__store_relaxed(&recorder->label_epoch, recorder->label_epoch + 1);
}

/* recorder/labels.c. The thread's debug info has changed: updates opscope__hot.label_bits. */
void opscope__recorder_labels_changed(const struct opscope__thread *thread);
/* Callbacks have changed, and perhaps the label keys. */
void opscope__recorder_labels_follow(const struct opscope__thread *thread);

/* recorder/recorder.c: the callback; and, cold, its start and end in all but the common cases and
 * of outer ranges. */
int opscope__recorder_range_start(const opscope_range *fn, void *user, void **context);
int opscope__recorder_range_end(const opscope_range *fn, void *user, void *context);
int opscope__recorder_start_slow(const opscope_range *fn, bool is_outer, void **context);
int opscope__recorder_end_slow(const opscope_range *fn, struct opscope__frame *frame, uint64_t now);
/* recorder/outer.c: the callback that follows outer ranges with a weight of 1. */
int opscope__recorder_outer_start(const opscope_range *fn, void *user, void **context);
int opscope__recorder_outer_end(const opscope_range *fn, void *user, void *context);

/* recorder/thread.c. For the callbacks' leaf. */
bool opscope__recorder_lose(const opscope_range *range, void *context);
/* The thread ends: the next new thread may take its table. */
void opscope__recorder_thread_end(struct opscope__thread *thread);
void opscope__recorder_thread_free(struct opscope__thread *thread);
/* True if a range with a weight is still open on any thread, outer ranges excluded. Concurrent
 * starts and ends may make it inexact. */
bool opscope__recorder_has_open_ranges(void);
/* Cold: the thread's state, with a table in the current segment; NULL if there is no room for a
 * table (the range then counts as dropped). */
struct opscope__recorder_thread *opscope__recorder_thread_open(struct opscope__thread *thread);
/* A window opens: notes which tables are of new threads. A thread is known or new for the whole
 * window. */
void opscope__recorder_tell_tables(void);
/* Counts a range that could not be recorded. */
void opscope__recorder_drop(struct opscope__recorder_thread *state);
/* Removes the frames from `first` on, whose ends came late or never, and counts them as dropped. */
void opscope__recorder_unwind(struct opscope__recorder_thread *state, struct opscope__frame *first);

/* recorder/window_ranges.c. Begins a new serial: from now on all ranges are recorded, or not
 * all. */
void opscope__recorder_begin_serial(bool is_whole);
/* The weights of ranges that start from now on, in units of 2^-16, on known threads and on new
 * ones. */
void opscope__recorder_set_weights(uint64_t known_weight, uint64_t new_weight);
/* Begins or ends to count ranges, without recording them (recorder/cost_compare.h). */
void opscope__recorder_count_few(bool is_on);
bool opscope__recorder_wants_comparison(uint64_t window_number);
/* Adds to the cost of recording, as measured in loops. */
void opscope__recorder_add_cost_ns(double ns);
struct opscope__cost_comparison;
void opscope__recorder_compare_cost(const struct opscope__cost_comparison *window);
/* Opens and closes a window. In between, call opscope__recorder_set_weights; with 0, as at the
 * beginning, ranges are recorded only because they may enclose others. */
void opscope__recorder_window_open(void);
void opscope__recorder_window_close(uint64_t on_ns, uint64_t wall_ns);
/* Adds CPU time of the thread that opens windows. */
void opscope__recorder_window_thread(uint64_t cpu_ns);
/* Reports the last closed window: see recorder/variance.h. */
struct opscope__variance_window;
void opscope__recorder_window_vary(const struct opscope__variance_window *window);
/* The cost of recording for the program's threads so far, in this segment. */
struct opscope__cost;
void opscope__recorder_read_cost(struct opscope__cost *out);

/* recorder/life.c. The first runs in the child with all locks held; the second afterwards, without
 * locks, and prepares the child's first range to make its segment. */
void opscope__recorder_fork_child(void);
void opscope__recorder_fork_child_done(void);
/* An API was used for the first time: writes it into the segment, if there is one. */
void opscope__recorder_usage(void);
/* A callback reported a failure: counts it in the segment, if there is one. */
void opscope__recorder_callback_error(void);
/* For the hooks. */
void opscope__recorder_resume(void);

/* recorder/notes.c: facts about the process, written into every segment that it makes. With the
 * segment lock held. */
int opscope__notes_set(opscope__segment *segment, const char *key, const char *value);
void opscope__notes_write_all(opscope__segment *segment);

#endif
