/* record/sampling.c -- how the recorder samples: its callback registered anew at each change,
 * windows opened and closed. What is to be sampled is said by record/control.c, when windows open
 * by record/window.c.
 */
#include "record/sampling.h"

#include <math.h>

#include "base/atomics.h"
#include "record/callback.h"
#include "record/control.h"
#include "record/cost.h"
#include "record/window.h"

static const double WEIGHT_LIMIT = 1e9;

void opscope__sampling_show(const struct opscope__recorder *recorder)
{
    if (recorder->segment.base == NULL) {
        return;
    }
    opscope_segment_header *header = opscope__segment_header(&recorder->segment);
    const struct opscope__sampling *sampling = &recorder->sampling;
    /* Partner: the reader of the file, to whom these are facts by themselves. */
    opscope__store_relaxed(&header->window_ns, sampling->window_ns);
    opscope__store_relaxed(&header->period_ns, sampling->period_ns);
    opscope__store_relaxed(
        &header->sampling_prob_ppt,
        (uint64_t)llround((sampling->window_ns == 0 ? sampling->prob : 1.0) * 1e12));
    opscope__store_relaxed(&header->is_disabled, !recorder->wanted.is_enabled);
}

static void begin_serial(struct opscope__recorder *recorder, bool is_whole)
{
    uint64_t serial = opscope__add_relaxed(&recorder->serial, 1) + 1;
    opscope__store_relaxed(&recorder->whole_serial, is_whole ? serial : 0);
}

/* With the segment lock held, on top of that of the settings, so that either will do to read. */
static void set_now(struct opscope__recorder *recorder, struct opscope__sampling sampling,
                    bool is_off, opscope_handle handle)
{
    opscope__segment_lock();
    recorder->sampling = sampling;
    recorder->is_off = is_off;
    recorder->handle = handle;
    opscope__sampling_show(recorder);
    opscope__segment_unlock();
}

static void remove_callback(struct opscope__recorder *recorder)
{
    begin_serial(recorder, false); /* first: ranges open now will miss some of those within them */
    if (recorder->handle != 0) {
        (void)opscope_remove_callback(recorder->handle, false);
        set_now(recorder, recorder->sampling, recorder->is_off, 0);
    }
}

int opscope__sampling_apply(struct opscope__recorder *recorder, struct opscope__sampling sampling,
                            bool is_off)
{
    /* Off is a window that never opens: the callback is there, but disabled, and costs nothing. */
    const bool is_quiet = is_off || sampling.window_ns != 0;
    const double prob = is_quiet ? 1.0 : sampling.prob;
    const opscope_callback callback = {.start = opscope__recorder_range_start,
                                       .end = opscope__recorder_range_end,
                                       .sampling_prob = prob,
                                       .scopes = recorder->scopes};
    opscope_handle handle;
    opscope__window_stop();
    remove_callback(recorder);
    opscope__store_relaxed(&recorder->weight,
                           is_quiet ? 0 : (uint64_t)llround((double)OPSCOPE__WEIGHT_ONE / prob));
    begin_serial(recorder, !is_quiet && prob >= 1.0);
    int status = opscope__add_global_leaf(&callback, &handle);
    set_now(recorder, sampling, is_off, status == OPSCOPE_OK ? handle : 0);
    if (status == OPSCOPE_OK && is_quiet) {
        (void)opscope_disable_callback(handle);
        status = opscope__window_start(is_off ? 0 : sampling.window_ns, sampling.period_ns);
    }
    return status;
}

void opscope__sampling_resume(struct opscope__recorder *recorder)
{
    if (recorder->is_off) {
        (void)opscope_disable_callback(recorder->handle); /* it was enabled to make the segment */
    }
    if (recorder->is_off || recorder->sampling.window_ns != 0) {
        (void)opscope__window_start(recorder->is_off ? 0 : recorder->sampling.window_ns,
                                    recorder->sampling.period_ns);
    }
}

void opscope__sampling_stop(struct opscope__recorder *recorder)
{
    opscope__window_stop();
    remove_callback(recorder);
    opscope__store_relaxed(&recorder->weight, 0);
}

int opscope_recorder_set_sampling(double sampling_prob, uint64_t window_ns, uint64_t period_ns)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    const struct opscope__sampling sampling = {sampling_prob, window_ns, period_ns};
    int status = opscope__sampling_check(&sampling);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__settings_lock();
    if (recorder->is_running) {
        const struct opscope__sampling before = recorder->configured.sampling;
        recorder->configured.sampling = sampling;
        status = opscope__control_refresh(recorder);
        if (status != OPSCOPE_OK) {
            recorder->configured.sampling = before;
        }
    } else {
        status = OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__settings_unlock();
    return status;
}

/* ---- windows ------------------------------------------------------------------------------------ */

void opscope__recorder_window_open(uint64_t weight)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__store_relaxed(&recorder->weight, weight);
    begin_serial(recorder, true);
    (void)opscope_enable_callback(recorder->handle);
}

void opscope__recorder_window_close(uint64_t on_ns, uint64_t wall_ns)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    begin_serial(recorder, false); /* first: see remove_callback */
    (void)opscope_disable_callback(recorder->handle);
    opscope__store_relaxed(&recorder->weight, 0);
    opscope__segment_lock();
    if (recorder->segment.base != NULL) {
        opscope_segment_header *header = opscope__segment_header(&recorder->segment);
        opscope__add_relaxed(&header->window_count, 1);
        opscope__add_relaxed(&header->window_on_ns, on_ns);
        opscope__add_relaxed(&header->window_wall_ns, wall_ns);
    }
    opscope__segment_unlock();
}

uint64_t opscope__recorder_cost_ns(void)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    const uint64_t cost_ns = opscope__cost_of_samples_ns(&recorder->segment);
    opscope__segment_unlock();
    return cost_ns;
}

int opscope_recorder_window_begin(double weight)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    if (!(weight >= 1.0 && weight <= WEIGHT_LIMIT)) {
        return OPSCOPE_ERR_INVALID;
    }
    if (!recorder->is_running || recorder->is_off || recorder->sampling.window_ns == 0) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__recorder_window_open((uint64_t)llround(weight * (double)OPSCOPE__WEIGHT_ONE));
    return OPSCOPE_OK;
}

int opscope_recorder_window_end(void)
{
    const struct opscope__recorder *recorder = &opscope__recorder;
    if (!recorder->is_running || recorder->is_off || recorder->sampling.window_ns == 0) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    opscope__recorder_window_close(0, 0);
    return OPSCOPE_OK;
}
