/* record/demand.h -- what the enabled callbacks need, for a bridge to a framework with its own
 * registry.
 *
 * Such a bridge registers with its framework, or replaces the framework's pointers, only while a
 * callback needs ranges; it therefore costs nothing outside windows. `changed` runs after each
 * change of the callbacks. The caller holds none of this library's locks, except perhaps that of
 * the settings. The bridge then calls opscope__demand_read. Several threads may call `changed` at
 * once; the last of them to read gets the current demand.
 */
#ifndef OPSCOPE_RECORD_DEMAND_H
#define OPSCOPE_RECORD_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/export.h"

struct opscope__demand {
    uint32_t scopes; /* bits: of each scope that an enabled callback needs, except the callback that
                        follows outer ranges; 0: none */
    uint32_t outer_scopes; /* bits: of the scopes in which the recorder follows every outer range
                              while it runs */
    double prob; /* the lowest drawing probability at which no callback misses a range: that of the
                    only callback, else 1; see opscope__range_was_drawn in record/callback.h */
    bool is_recorder; /* the recorder is the only callback */
    bool only_counts; /* it wants no ranges, only their number, and gets that from a bridge which
                         counts them itself (struct opscope__thread) */
    bool needs_inputs;
    bool needs_outputs;
};

struct opscope__demand_listener {
    void (*changed)(void);
    /* Run around a fork, on the forking thread. Prepare takes the listener's locks, which come
     * after the pool's and before the registry's (record/observer.h); done releases them, in the
     * parent and in the child. */
    void (*fork_prepare)(void);
    void (*fork_done)(void);
    /* Runs on a thread that ends, without locks, while this library's state of the thread still
     * exists. May be NULL. */
    void (*thread_ends)(void);
    /* Runs on a thread that gets a table in a segment of the recorder: its first recorded range is
     * about to start. May be NULL. */
    void (*thread_recorded)(void);
};

OPSCOPE_API void opscope__demand_read(struct opscope__demand *out);
/* Listeners live as long as the process; at most one per bridge. */
OPSCOPE_API void opscope__demand_listen(const struct opscope__demand_listener *listener);

/* For the record layer: call it after a change, with the registry lock released. */
void opscope__demand_changed(void);
/* For the recorder: call it when the thread gets a table. */
void opscope__demand_thread_recorded(void);

#endif
