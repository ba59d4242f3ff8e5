/* record/settings.h -- what is wanted of the recorder, and how wishes are laid over one another.
 *
 * Three layers, the later over the earlier: what the process was configured with; what it
 * inherited, from the process that forked it or from the directory's settings file; what its
 * control block says. Plain data and checks: who may say what, and when it takes effect, is in
 * record/control.c.
 */
#ifndef OPSCOPE_RECORD_SETTINGS_H
#define OPSCOPE_RECORD_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/segment.h"

enum { OPSCOPE__LABEL_KEYS_BYTES = sizeof(((opscope_control *)0)->label_keys) };

struct opscope__sampling {
    double prob;        /* where window_ns is 0; 0: nothing is recorded */
    uint64_t window_ns; /* 0: by probability */
    uint64_t period_ns;
};

struct opscope__settings {
    bool is_enabled;
    struct opscope__sampling sampling;
    uint64_t max_overhead_ppb; /* 0: any */
    bool spares_all;           /* no limit while every range is recorded */
    char label_keys[OPSCOPE__LABEL_KEYS_BYTES];
};

/* ERR_INVALID where the weights, or the sums over them, would not fit their integers. */
int opscope__sampling_check(const struct opscope__sampling *sampling);
bool opscope__sampling_is_same(const struct opscope__sampling *a,
                               const struct opscope__sampling *b);

/* Whether anything is recorded at all. */
static inline bool opscope__settings_are_off(const struct opscope__settings *settings)
{
    return !settings->is_enabled ||
           (settings->sampling.window_ns == 0 && settings->sampling.prob == 0.0);
}

/* The share that recording may take, times 1e9; 0: any. */
uint64_t opscope__settings_budget_ppb(const struct opscope__settings *settings);

/* What `wish` gives over what `settings` say; of the wish the fields up to label_keys, which are
 * anybody's. ERR_INVALID, nothing changed, where any of them is out of its range: *out_refused then
 * has the bits of those. */
int opscope__settings_overlay(struct opscope__settings *settings, const opscope_control *wish,
                              uint64_t *out_refused);

/* What `later` gives over what `wish` gives. */
void opscope__wish_merge(opscope_control *wish, const opscope_control *later);

#endif
