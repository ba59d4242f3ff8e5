/* record/callback.h -- registered callbacks, and the snapshot of them a thread fires.
 *
 * A firing is one thread's immutable view of the callbacks that concern it: the enabled global ones
 * in the order of registration, then its enabled local ones, with the countdowns that are sampling.
 * A range keeps the firing it was opened with, so its ends match its starts whatever is added or
 * removed meanwhile.
 *
 * Who may be inside a callback? A firing counts its open ranges. opener × remover:
 *   opener   stores open + 1, light fence, loads the version; where it changed: takes the store
 * back remover  changes the version, heavy fence, loads every open count that concerns the callback
 * At least one sees the other's store (base/fence.h): either the remover waits for the range, or
 * the opener does not start it. The count going down is a release; the remover's load an acquire:
 * what the callback did happened before remove returns.
 */
#ifndef OPSCOPE_RECORD_CALLBACK_H
#define OPSCOPE_RECORD_CALLBACK_H

#include "record/thread.h"

enum { OPSCOPE__CALLBACK_LIMIT = 64 };

struct opscope__callback {
    opscope_callback spec;
    opscope_handle handle;
    uint32_t reference_count; /* registry lock */
    bool enabled;             /* registry lock */
    bool is_leaf; /* runs no operators, reports no failures, is never waited for: the recorder */
    struct opscope__callback *next_dead; /* while on the way to its drop */
};

/* A thread's local callbacks: shared with captured states, so never changed in place. */
struct opscope__callback_list {
    uint32_t reference_count; /* registry lock */
    uint32_t count;
    struct opscope__callback *items[];
};

/* How the ranges of one scope fire. Bits are indices into the firing's callbacks. */
struct opscope__lane {
    uint64_t always;  /* p = 1: at every range */
    uint64_t sampled; /* 0 < p < 1: when its countdown ends */
    uint64_t armed;   /* what the thread's skip was last set to */
    /* The only callback that can fire, asking for nothing but its calls; else NULL. The recorder is
     * such a one in most programs, so it has a path of its own: `solo` is it where the skip ends
     * with its firing, and not only with a look. */
    struct opscope__callback *only;
    struct opscope__callback *solo;
    /* Where the recorder is sampled: its control block is looked at every so many ranges, as many
     * as take some 100 µs of late, so that a program that becomes slow is still heard soon. */
    uint64_t look_every;
    uint64_t look_in;          /* ranges to the next; at least `armed`; 0: never */
    uint64_t look_start_ticks; /* of those ranges */
    uint64_t look_ticks;       /* when to look into the block itself: about ten times a second */
};

struct opscope__firing {
    struct opscope__thread *owner;      /* NULL once the thread has ended; relaxed */
    struct opscope__firing *next_stale; /* registry lock */
    uint64_t version;
    uint64_t thread_id;
    uint64_t open_count;             /* owner stores (release), removers load (acquire) */
    uint64_t closed_elsewhere_count; /* registry lock: async ranges closed by other threads */
    uint64_t needs_inputs;           /* bits */
    uint64_t needs_outputs;
    uint64_t needs_ids;
    uint32_t count;
    struct opscope__lane lanes[OPSCOPE_SCOPE_COUNT]; /* owner */
    uint64_t *countdowns;                            /* owner: [scope * count + callback] */
    struct opscope__callback *callbacks[];
};

/* With the registry lock held: a new firing for this thread; NULL with *out_empty where nothing
 * fires, NULL without where memory ran out. */
struct opscope__firing *opscope__firing_create(struct opscope__thread *thread, bool *out_empty);
/* With the lock held: drops the firing's references; dead callbacks go to the front of *dead. */
void opscope__firing_destroy(struct opscope__firing *firing, struct opscope__callback **dead);
void opscope__callback_release(struct opscope__callback *callback, struct opscope__callback **dead);
/* With the lock held: the enabled callbacks that concern the thread, in the order they fire;
 * returns how many, at most OPSCOPE__CALLBACK_LIMIT. */
uint32_t opscope__callbacks_enabled(const struct opscope__thread *thread,
                                    struct opscope__callback **out);
void opscope__callback_list_release(struct opscope__callback_list *list,
                                    struct opscope__callback **dead);
/* opscope_add_global_callback, for a leaf. */
int opscope__add_global_leaf(const opscope_callback *spec, opscope_handle *out);
/* Without the lock: runs the drops. */
void opscope__callbacks_drop(struct opscope__callback *dead);

/* The next countdown, and what fires, when the thread's skip for `scope` has come to 0. */
uint64_t opscope__lane_draw(struct opscope__firing *firing, opscope_scope scope,
                            opscope__random *random, uint64_t *out_skip);

/* The lane's skip has ended with a look. May change what fires, the lane itself with it. */
void opscope__lane_look(struct opscope__lane *lane);

/* The least probability at which a framework draws for the recorder, so that this library hears
 * from it: what more than that it draws is thinned out. */
#define OPSCOPE__DRAWN_PROB_LEAST (1.0 / 256)
/* A framework has drawn the range that starts now on this thread, with the probability of
 * opscope__demand_read. True where it is to be recorded: the countdown of its scope then ends with
 * it. A geometric countdown has no memory, so what comes after is as likely as it was. */
OPSCOPE_API bool opscope__range_was_drawn(opscope_scope scope);

/* The same where the lane has a `solo` that is sampled, which fires now: the next countdown. */
uint64_t opscope__lane_draw_solo(struct opscope__firing *firing, opscope_scope scope,
                                 opscope__random *random);

static inline uint64_t opscope__firing_open_total(const struct opscope__firing *firing)
{
    return __atomic_load_n(&firing->open_count, __ATOMIC_ACQUIRE) - firing->closed_elsewhere_count;
}

#endif
