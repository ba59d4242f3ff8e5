/* record/demand.h -- what the enabled callbacks want, for a bridge to a framework with a registry
 * of its own.
 *
 * Such a bridge registers with its framework only while somebody wants ranges, and so costs nothing
 * outside windows; one that replaces pointers does so only then. It listens: `changed` is called
 * after each change of the callbacks, with none of this library's locks held but perhaps that of
 * the settings, and asks opscope__demand_read. Calls may come from several threads at once; whoever
 * reads last reads what holds.
 */
#ifndef OPSCOPE_RECORD_DEMAND_H
#define OPSCOPE_RECORD_DEMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/export.h"

struct opscope__demand {
    uint32_t
        scopes;  /* bits: of each scope that an enabled callback wants; 0: nobody wants anything */
    double prob; /* the least at which no callback misses anything: of the only one, else 1; see
                    opscope__range_was_drawn in record/callback.h */
    bool is_recorder; /* the recorder is the only one */
    bool needs_inputs;
    bool needs_outputs;
};

struct opscope__demand_listener {
    void (*changed)(void);
    /* Around a fork, on the forking thread: takes the listener's locks, which come after the pool's
     * and before the registry's (record/process.c); gives them back, in the parent or the child. */
    void (*fork_prepare)(void);
    void (*fork_done)(void);
    /* On a thread that ends, with what this library keeps for it still there, and no lock held.
     * NULL: nothing is to be done. */
    void (*thread_ends)(void);
};

OPSCOPE_API void opscope__demand_read(struct opscope__demand *out);
/* Listeners live as long as the process, at most one for each bridge. */
OPSCOPE_API void opscope__demand_listen(const struct opscope__demand_listener *listener);

/* For the record layer: after a change, the registry lock released. */
void opscope__demand_changed(void);
/* For record/thread.c. */
void opscope__demand_thread_ends(void);
/* For record/process.c. */
void opscope__demand_fork_prepare(void);
void opscope__demand_fork_done(void);

#endif
