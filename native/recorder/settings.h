/* recorder/settings.h -- the recorder's settings, and how changes combine.
 *
 * There are three layers, each over the one before: the process's configuration; the settings it
 * inherited, from the process that forked it or from the directory's settings file; the settings in
 * its control block. This file has plain data and checks; recorder/control.c knows who may change
 * which layer, and when a change takes effect.
 */
#ifndef OPSCOPE_RECORDER_SETTINGS_H
#define OPSCOPE_RECORDER_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/segment.h"

enum { OPSCOPE__LABEL_KEYS_BYTES = sizeof(((opscope_control *)0)->label_keys) };

struct opscope__sampling {
    double prob;        /* while window_ns is 0; 0: records nothing */
    uint64_t window_ns; /* 0: by probability */
    uint64_t period_ns;
};

struct opscope__settings {
    bool is_enabled;
    struct opscope__sampling sampling;
    uint64_t max_overhead_ppb; /* 0: no limit */
    bool budget_is_default;    /* no limit while every range is recorded */
    char label_keys[OPSCOPE__LABEL_KEYS_BYTES];
};

/* ERR_INVALID if the weights, or the sums over them, would not fit their integers. */
int opscope__sampling_check(const struct opscope__sampling *sampling);
bool opscope__sampling_is_same(const struct opscope__sampling *a,
                               const struct opscope__sampling *b);

/* True if nothing is recorded. */
static inline bool opscope__settings_are_off(const struct opscope__settings *settings)
{
    return !settings->is_enabled ||
           (settings->sampling.window_ns == 0 && settings->sampling.prob == 0.0);
}

/* The maximum share for recording, times 1e9; 0: no limit. */
uint64_t opscope__settings_budget_ppb(const struct opscope__settings *settings);
/* The limit for outer ranges alone. A budget that somebody set is kept: three quarters of it, as
 * operators keep a quarter. The default is a target: twice of it, for what a program of many short
 * steps loses without outer ranges, the phases of its operators, is worth more. */
uint64_t opscope__settings_outer_budget_ppb(const struct opscope__settings *settings);

/* Applies the settings that `change` gives over `settings`. It reads the fields of the change up to
 * label_keys and trusts none of them. ERR_INVALID, with nothing changed, if a value is out of
 * range: *out_refused then has the bits of those settings. */
int opscope__settings_overlay(struct opscope__settings *settings, const opscope_control *change,
                              uint64_t *out_refused);

/* Applies the settings that `later` gives over those of `change`. */
void opscope__change_merge(opscope_control *change, const opscope_control *later);

#endif
