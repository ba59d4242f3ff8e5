/* recorder/sampling.c -- applies a sampling: registers the recorder's callback anew at each change,
 * starts and stops windows. recorder/control.c decides what to sample; recorder/window.c decides
 * when windows open. */
#include "recorder/sampling.h"

#include <math.h>

#include "base/atomics.h"
#include "record/callback.h"
#include "recorder/cost_compare.h"
#include "recorder/window.h"

static const double WEIGHT_LIMIT = 1e9;

/* ---- the callbacks ------------------------------------------------------------------------------- */

static void poll(uint64_t now_ticks)
{
    (void)opscope__recorder.hooks->poll(NULL, now_ticks);
}

static const struct opscope__leaf leaf = {
    .lose = opscope__recorder_lose,
    .poll = poll,
    .poll_period_ticks = &opscope__recorder.poll_period_ticks};
static const struct opscope__leaf count_leaf = {.only_counts = true};
static const struct opscope__leaf outer_leaf = {.is_outer = true, .lose = opscope__recorder_lose};

/* ---- how it samples ------------------------------------------------------------------------------ */

void opscope__sampling_show(const struct opscope__recorder *recorder)
{
    if (recorder->segment.base == NULL) {
        return;
    }
    opscope_segment_header *header = opscope__segment_header(&recorder->segment);
    const struct opscope__sampling *sampling = &recorder->sampling;
    /* Partner: the reader of the file; each value is independent of other memory. */
    opscope__store_relaxed(&header->window_ns, sampling->window_ns);
    opscope__store_relaxed(&header->period_ns, sampling->period_ns);
    opscope__store_relaxed(
        &header->sampling_prob_ppt,
        (uint64_t)llround((sampling->window_ns == 0 ? sampling->prob : 1.0) * 1e12));
    opscope__store_relaxed(&header->is_disabled, !recorder->wanted.is_enabled);
}

struct handles {
    opscope_handle main, outer, count;
};

/* With the segment lock held, in addition to that of the settings, so that either suffices to
 * read. */
static void set_now(struct opscope__recorder *recorder, struct opscope__sampling sampling,
                    bool is_off, const struct handles *handles)
{
    opscope__segment_lock();
    recorder->sampling = sampling;
    recorder->is_off = is_off;
    recorder->handle = handles->main;
    recorder->outer_handle = handles->outer;
    recorder->count_handle = handles->count;
    opscope__store_relaxed(&recorder->cost_factor, 0); /* until the next reading of the cost */
    opscope__store_relaxed(&recorder->long_ticks, UINT64_MAX); /* until the next window */
    opscope__sampling_show(recorder);
    opscope__segment_unlock();
}

static void remove_callbacks(struct opscope__recorder *recorder)
{
    opscope__recorder_begin_serial(
        false); /* first: ranges open now will miss some of those inside them */
    if (recorder->handle != 0) {
        (void)opscope_remove_callback(recorder->handle, false);
    }
    if (recorder->outer_handle != 0) {
        (void)opscope_remove_callback(recorder->outer_handle, false);
    }
    if (recorder->count_handle != 0) {
        (void)opscope_remove_callback(recorder->count_handle, false);
    }
    set_now(recorder, recorder->sampling, recorder->is_off, &(struct handles){0});
}

/* A separate callback follows outer ranges, the few long ones that enclose operators, both inside
 * and outside windows. The recorder therefore knows what encloses an operator even in the middle of
 * an outer range, and the outer ranges' own calls and times are exact. While every range is
 * recorded, this callback is unnecessary. */
static const uint32_t OUTER_SCOPES = 1u << OPSCOPE_USER_SCOPE;

static uint32_t outer_scopes(const struct opscope__recorder *recorder, bool is_whole, bool is_off)
{
    const uint32_t wanted = recorder->scopes != 0 ? recorder->scopes & OUTER_SCOPES : OUTER_SCOPES;
    return is_whole || is_off || recorder->spares_outer ? 0 : wanted;
}

int opscope__sampling_apply(struct opscope__recorder *recorder, struct opscope__sampling sampling,
                            bool is_off)
{
    /* Off is like a window that never opens: the callback is registered but disabled, and costs
     * nothing. */
    const bool is_quiet = is_off || sampling.window_ns != 0;
    const double prob = is_quiet ? 1.0 : sampling.prob;
    const bool is_whole = !is_quiet && prob >= 1.0;
    const uint32_t all_scopes = (1u << OPSCOPE_SCOPE_COUNT) - 1;
    const uint32_t outer = outer_scopes(recorder, is_whole, is_off);
    const opscope_callback callback = {
        .start = opscope__recorder_range_start,
        .end = opscope__recorder_range_end,
        .sampling_prob = prob,
        .scopes = (recorder->scopes != 0 ? recorder->scopes : all_scopes) & ~outer};
    const opscope_callback outer_callback = {.start = opscope__recorder_outer_start,
                                             .end = opscope__recorder_outer_end,
                                             .sampling_prob = 1.0,
                                             .scopes = outer};
    /* The bridges count only operators, and so must the cost that the count is compared with. */
    const opscope_callback count_callback = {.sampling_prob = OPSCOPE__COST_COMPARE_PROB,
                                             .scopes = callback.scopes & 1u << OPSCOPE_FUNCTION};
    struct handles handles = {0};
    opscope__window_stop();
    remove_callbacks(recorder);
    const uint64_t weight = is_quiet ? 0 : (uint64_t)llround((double)OPSCOPE__WEIGHT_ONE / prob);
    opscope__recorder_set_weights(weight, weight);
    opscope__store_relaxed(&recorder->is_open, !is_quiet);
    opscope__store_relaxed(&recorder->unseen_phase_bits,
                           is_whole || outer != 0 ? 0 : OPSCOPE__PHASE_BITS(OPSCOPE_UNKNOWN));
    opscope__recorder_begin_serial(is_whole);
    int status = OPSCOPE_OK;
    if (callback.scopes != 0) {
        status = opscope__add_global_leaf(&callback, &leaf, &handles.main);
    }
    if (status == OPSCOPE_OK && outer != 0) {
        status = opscope__add_global_leaf(&outer_callback, &outer_leaf, &handles.outer);
    }
    /* Without room for this callback, windows only know less of the cost. */
    if (status == OPSCOPE_OK && is_quiet && !is_off && count_callback.scopes != 0 &&
        opscope__add_global_leaf(&count_callback, &count_leaf, &handles.count) == OPSCOPE_OK) {
        (void)opscope_disable_callback(handles.count);
    }
    set_now(recorder, sampling, is_off, &handles);
    if (status == OPSCOPE_OK && is_quiet && !opscope__load_relaxed(&recorder->awaits_range)) {
        (void)opscope_disable_callback(handles.main);
        status = opscope__window_start(is_off ? 0 : sampling.window_ns, sampling.period_ns);
    }
    return status;
}

/* With the settings lock held. Partners of the store: the loads at ranges, which may come here once
 * more without effect; other loads run under this lock. */
static void stop_waiting(struct opscope__recorder *recorder)
{
    if (recorder->is_running && opscope__load_relaxed(&recorder->awaits_range)) {
        opscope__store_relaxed(&recorder->awaits_range, 0);
        if (recorder->is_off || recorder->sampling.window_ns != 0) {
            (void)opscope_disable_callback(recorder->handle);
            (void)opscope__window_start(recorder->is_off ? 0 : recorder->sampling.window_ns,
                                        recorder->sampling.period_ns);
        }
    }
}

void opscope__sampling_first_range(struct opscope__recorder *recorder)
{
    if (opscope__settings_trylock()) { /* else the next range tries again */
        stop_waiting(recorder);
        opscope__settings_unlock();
    }
}

void opscope__sampling_resume(struct opscope__recorder *recorder)
{
    opscope__store_relaxed(&recorder->awaits_range, 0);
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
    remove_callbacks(recorder);
    opscope__store_relaxed(&recorder->is_open, 0);
}

/* ---- windows that a program opens itself ----------------------------------------------------------- */

int opscope_recorder_window_begin(double weight)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    if (!(weight >= 1.0 && weight <= WEIGHT_LIMIT)) {
        return OPSCOPE_ERR_INVALID;
    }
    if (!recorder->is_running || recorder->is_off || recorder->sampling.window_ns == 0) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    const uint64_t units = (uint64_t)llround(weight * (double)OPSCOPE__WEIGHT_ONE);
    opscope__settings_lock(); /* another range may be doing the same: the window must not open
                                 before that is done */
    stop_waiting(recorder);
    opscope__settings_unlock();
    opscope__recorder_window_open();
    opscope__recorder_set_weights(units, units);
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
