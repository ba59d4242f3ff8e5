/* recorder/settings.c -- see recorder/settings.h. */
#include "recorder/settings.h"

#include <string.h>

#include "opscope/status.h"
#include "segment/names.h"

static const double LEAST_PROB = 1e-12;
static const uint64_t PERIOD_LIMIT_NS = 1000000000000000, WEIGHT_LIMIT = 1000000000;
static const uint64_t ONE_PPT = 1000000000000, ONE_PPB = 1000000000;
/* Defaults of windows that a change turns on without configured ones (as in
 * agent/opscope/config.py). */
static const uint64_t WINDOW_NS = 2000000, PERIOD_NS = 250000000;

int opscope__sampling_check(const struct opscope__sampling *sampling)
{
    const double prob = sampling->prob;
    const uint64_t window_ns = sampling->window_ns, period_ns = sampling->period_ns;
    bool valid = window_ns == 0 ? prob == 0.0 || (prob >= LEAST_PROB && prob <= 1.0)
                                : period_ns > window_ns && period_ns <= PERIOD_LIMIT_NS &&
                                      period_ns / window_ns < WEIGHT_LIMIT;
    return valid ? OPSCOPE_OK : OPSCOPE_ERR_INVALID;
}

bool opscope__sampling_is_same(const struct opscope__sampling *a, const struct opscope__sampling *b)
{
    if (a->window_ns != b->window_ns) {
        return false;
    }
    return a->window_ns != 0 ? a->period_ns == b->period_ns : a->prob == b->prob;
}

uint64_t opscope__settings_budget_ppb(const struct opscope__settings *settings)
{
    const bool is_all = settings->sampling.window_ns == 0 && settings->sampling.prob >= 1.0;
    return settings->budget_is_default && is_all ? 0 : settings->max_overhead_ppb;
}

uint64_t opscope__settings_outer_budget_ppb(const struct opscope__settings *settings)
{
    const uint64_t budget_ppb = opscope__settings_budget_ppb(settings);
    return settings->budget_is_default ? 2 * budget_ppb : budget_ppb - budget_ppb / 4;
}

static bool take_windows(struct opscope__sampling *sampling, const opscope_control *change)
{
    struct opscope__sampling windows = {1.0, change->window_ns, change->period_ns};
    if (change->window_ns == 0 && sampling->window_ns != 0) {
        return change->period_ns == 0; /* keeps the current ones */
    }
    if (change->window_ns == 0) {
        windows =
            (struct opscope__sampling){1.0, WINDOW_NS, change->period_ns == 0 ? PERIOD_NS : 0};
    }
    *sampling = windows;
    return opscope__sampling_check(&windows) == OPSCOPE_OK;
}

static bool take_probability(struct opscope__sampling *sampling, const opscope_control *change)
{
    *sampling =
        (struct opscope__sampling){.prob = (double)change->sampling_prob_ppt / (double)ONE_PPT};
    return change->sampling_prob_ppt <= ONE_PPT;
}

static bool take_label_keys(struct opscope__settings *settings, const opscope_control *change)
{
    memcpy(settings->label_keys, change->label_keys, sizeof settings->label_keys);
    return memchr(change->label_keys, '\0', sizeof change->label_keys) != NULL &&
           opscope__label_keys_check(change->label_keys) == OPSCOPE_OK;
}

int opscope__settings_overlay(struct opscope__settings *settings, const opscope_control *change,
                              uint64_t *out_refused)
{
    struct opscope__settings changed = *settings;
    const uint64_t either = OPSCOPE_CONTROL_SAMPLING | OPSCOPE_CONTROL_WINDOWS;
    const uint64_t given = change->given;
    uint64_t refused = given & ~(uint64_t)(OPSCOPE_CONTROL_ALL | OPSCOPE_CONTROL_ALONE);
    if ((given & either) == either) {
        refused |= either;
    }
    if (given & OPSCOPE_CONTROL_ENABLED) {
        changed.is_enabled = change->enabled != 0;
        refused |= change->enabled > 1 ? OPSCOPE_CONTROL_ENABLED : 0;
    }
    if ((given & OPSCOPE_CONTROL_WINDOWS) && !take_windows(&changed.sampling, change)) {
        refused |= OPSCOPE_CONTROL_WINDOWS;
    }
    if ((given & OPSCOPE_CONTROL_SAMPLING) && !take_probability(&changed.sampling, change)) {
        refused |= OPSCOPE_CONTROL_SAMPLING;
    }
    if (given & OPSCOPE_CONTROL_MAX_OVERHEAD) {
        changed.max_overhead_ppb = change->max_overhead_ppb;
        changed.budget_is_default = false;
        refused |= change->max_overhead_ppb > ONE_PPB ? OPSCOPE_CONTROL_MAX_OVERHEAD : 0;
    }
    if ((given & OPSCOPE_CONTROL_LABELS) && !take_label_keys(&changed, change)) {
        refused |= OPSCOPE_CONTROL_LABELS;
    }
    if (refused != 0) {
        *out_refused = refused;
        return OPSCOPE_ERR_INVALID;
    }
    *settings = changed;
    return OPSCOPE_OK;
}

void opscope__change_merge(opscope_control *change, const opscope_control *later)
{
    if (later->given & OPSCOPE_CONTROL_ALONE) {
        *change = *later;
        return;
    }
    if (later->given & OPSCOPE_CONTROL_ENABLED) {
        change->enabled = later->enabled;
    }
    if (later->given & (OPSCOPE_CONTROL_SAMPLING | OPSCOPE_CONTROL_WINDOWS)) {
        change->given &= ~(uint64_t)(OPSCOPE_CONTROL_SAMPLING | OPSCOPE_CONTROL_WINDOWS);
        change->sampling_prob_ppt = later->sampling_prob_ppt;
        change->window_ns = later->window_ns;
        change->period_ns = later->period_ns;
    }
    if (later->given & OPSCOPE_CONTROL_MAX_OVERHEAD) {
        change->max_overhead_ppb = later->max_overhead_ppb;
    }
    if (later->given & OPSCOPE_CONTROL_LABELS) {
        memcpy(change->label_keys, later->label_keys, sizeof change->label_keys);
    }
    change->given |= later->given;
}
