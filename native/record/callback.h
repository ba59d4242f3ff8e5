/* record/callback.h -- registered callbacks, and each thread's snapshot of them.
 *
 * A snapshot is one thread's immutable view of the callbacks that may fire on it: the enabled
 * global ones in the order of registration, then its enabled local ones, with the countdowns for
 * sampling. A range keeps the snapshot it was opened with, so its ends match its starts even if
 * callbacks are added or removed meanwhile.
 *
 * How does a remover know that no thread is inside a callback? A snapshot counts its open ranges.
 *   opener    stores open + 1, light fence, loads the version; if it changed: undoes the store
 *   remover   changes the version, heavy fence, loads the open count of each snapshot concerned
 * At least one sees the other's store (base/fence.h): either the remover waits for the range, or
 * the opener does not start it. The opener decrements the count with a release; the remover loads
 * it with an acquire: everything the callback did happens before remove returns.
 */
#ifndef OPSCOPE_RECORD_CALLBACK_H
#define OPSCOPE_RECORD_CALLBACK_H

#include "base/atomics.h"
#include "record/thread.h"

enum { OPSCOPE__CALLBACK_LIMIT = 64 };

/* A callback of this library: a leaf. It runs no operators, reports no failures, and no remover
 * waits for it. Lives as long as the process; functions may be NULL. */
struct opscope__leaf {
    bool is_outer;    /* always follows outer ranges; adds no demand for other ranges */
    bool only_counts; /* wants no ranges, only their number: it never fires, but bridges act as if
                         it did, so that ranges count down */
    bool sees_private_threads; /* see struct opscope__thread */
    /* Called when the range is lost (opscope__range_lose). Returns true if the callback was
     * recording the range and now leaves it out. */
    bool (*lose)(const opscope_range *range, void *context);
    /* For a sampled callback: called at ranges, whether they fire or not, at most once per poll
     * period. May change callbacks. */
    void (*poll)(uint64_t now_ticks);
    const uint64_t *poll_period_ticks; /* relaxed */
};

struct opscope__callback {
    opscope_callback spec;
    opscope_handle handle;
    uint32_t reference_count;            /* registry lock */
    bool enabled;                        /* registry lock */
    const struct opscope__leaf *leaf;    /* NULL: a program's own callback */
    struct opscope__callback *next_dead; /* the next callback to drop */
};

/* A thread's local callbacks. Captured states share the list, so it never changes in place. */
struct opscope__callback_list {
    uint32_t reference_count; /* registry lock */
    uint32_t count;
    struct opscope__callback *items[];
};

/* How the ranges of one scope fire. Bits are indices into the snapshot's callbacks. */
struct opscope__scope_slot {
    uint64_t always;  /* probability 1: fire at every range */
    uint64_t sampled; /* probability between 0 and 1: fire when their countdown ends */
    uint64_t armed;   /* the last value of the thread's skip */
    /* The callback, if only one can fire in this scope and it needs no inputs, outputs or ids; else
     * NULL. In most programs that is the recorder, so this case has a fast path. `solo` equals
     * `only` if the current skip ends at a range that fires, and is NULL if it ends at a poll. */
    struct opscope__callback *only;
    struct opscope__callback *solo;
    /* For a sampled leaf that polls: the number of ranges between two clock reads. It adapts so
     * that they recently took about 100 µs; the leaf is therefore still polled soon after a program
     * slows down. */
    uint64_t poll_every;
    uint64_t poll_in;          /* ranges until the next clock read; at least `armed`; 0: never */
    uint64_t poll_start_ticks; /* start of these ranges */
    uint64_t next_poll_ticks;  /* time of the next poll */
};

struct opscope__snapshot {
    struct opscope__thread *owner;        /* NULL after the thread has ended; relaxed */
    struct opscope__snapshot *next_stale; /* registry lock */
    uint64_t version;
    uint64_t thread_id;
    uint64_t open_count;             /* owner stores (release), removers load (acquire) */
    uint64_t closed_elsewhere_count; /* registry lock: async ranges that other threads closed */
    uint64_t needs_inputs;           /* bits */
    uint64_t needs_outputs;
    uint64_t needs_ids;
    uint32_t count;
    struct opscope__scope_slot scope_slots[OPSCOPE_SCOPE_COUNT]; /* owner */
    const struct opscope__leaf *polled; /* the leaf to poll, sampled in some scope; NULL: none */
    const struct opscope__callback *counting; /* the one that only counts; NULL: none */
    uint64_t *countdowns;                     /* owner: [scope * count + callback] */
    struct opscope__callback *callbacks[];
};

/* Registry lock: snapshots that outlived their thread, linked by `next_stale`. */
extern struct opscope__snapshot *opscope__orphans;

/* Rebuilds this thread's snapshot and resets its countdowns. Returns NULL if memory ran out;
 * nothing fires then. */
struct opscope__thread *opscope__thread_refresh(void);
/* Frees the snapshots of `thread` (may be NULL), and of ended threads, that have no open range. */
void opscope__snapshots_sweep(struct opscope__thread *thread);

/* With the registry lock held: builds a new snapshot for this thread. If nothing fires, returns
 * NULL and sets *out_empty; if memory ran out, returns NULL and clears it. */
struct opscope__snapshot *opscope__snapshot_create(struct opscope__thread *thread, bool *out_empty);
/* With the lock held: drops the snapshot's references, and adds callbacks without references to the
 * front of *dead. */
void opscope__snapshot_destroy(struct opscope__snapshot *snapshot, struct opscope__callback **dead);
void opscope__callback_release(struct opscope__callback *callback, struct opscope__callback **dead);
/* With the lock held: the enabled callbacks that may fire on the thread, in firing order; returns
 * their number, at most OPSCOPE__CALLBACK_LIMIT. */
uint32_t opscope__callbacks_enabled(const struct opscope__thread *thread,
                                    struct opscope__callback **out);
void opscope__callback_list_release(struct opscope__callback_list *list,
                                    struct opscope__callback **dead);
/* opscope_add_global_callback for a leaf; with NULL, for a callback of the program. */
int opscope__add_global_leaf(const opscope_callback *spec, const struct opscope__leaf *leaf,
                             opscope_handle *out);
/* Without the lock: calls the drop functions. */
void opscope__callbacks_drop(struct opscope__callback *dead);

/* Sets the skip to the next countdown's end, or to the next poll if that comes first; returns the
 * skip. */
uint64_t opscope__scope_slot_arm(struct opscope__scope_slot *slot, uint64_t countdown);

/* Called when the thread's skip for `scope` reaches 0: draws the next countdowns and returns the
 * callbacks that fire. */
uint64_t opscope__scope_slot_draw(struct opscope__snapshot *snapshot, opscope_scope scope,
                                  opscope__random *random, uint64_t *out_skip);

/* Called when the slot's skip ends at a poll. May change callbacks, and free the slot. */
void opscope__scope_slot_poll(struct opscope__snapshot *snapshot, struct opscope__scope_slot *slot);

/* The lowest probability at which a framework draws ranges for the recorder, so that this library
 * still polls. Ranges drawn above the recorder's probability are thinned out. */
#define OPSCOPE__DRAWN_PROB_LEAST (1.0 / 256)
/* A framework has drawn the range that now starts on this thread, with the probability of
 * opscope__demand_read. Returns true if the range should be recorded: the countdown of its scope
 * then ends at this range. A geometric countdown has no memory, so this does not change the
 * distribution of later ranges. */
OPSCOPE_API bool opscope__range_was_drawn(opscope_scope scope);

/* The same for a slot with a sampled `solo`, which fires now: draws the next countdown. */
uint64_t opscope__scope_slot_draw_solo(struct opscope__snapshot *snapshot, opscope_scope scope,
                                       opscope__random *random);

static inline uint64_t opscope__snapshot_open_total(const struct opscope__snapshot *snapshot)
{
    return opscope__load_acquire(&snapshot->open_count) - snapshot->closed_elsewhere_count;
}

#endif
