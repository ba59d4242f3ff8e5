/* recorder/observer.c -- connects the recorder with the layers below: the record layer's observers,
 * and the hooks for the recorder's own parts. */
#include "base/clock.h"
#include "record/debug_info.h"
#include "record/observer.h"
#include "record/range.h"
#include "recorder/control.h"
#include "recorder/metric.h"
#include "recorder/off_cpu.h"
#include "recorder/outer.h"
#include "recorder/sampling.h"
#include "recorder/state.h"
#include "recorder/window.h"
#include "segment/sandbox.h"

static void thread_begins(struct opscope__thread *thread)
{
    opscope__recorder_labels_changed(thread);
}

static void thread_refreshed(const struct opscope__thread *thread)
{
    opscope__recorder_labels_follow(thread);
    opscope__outer_refresh(thread);
}

/* Leaves the range out, as soon as no other one is inside. */
static void range_taken(struct opscope__thread *thread, opscope_range *range, bool *is_kept)
{
    struct opscope__recorder_thread *state = thread->recorder;
    if (state == NULL) {
        return;
    }
    struct opscope__frame *frame = state->top - 1;
    while (frame > &state->frames[0] && frame->range != range) {
        frame--;
    }
    if (frame == &state->frames[0]) {
        return;
    }
    if (frame != state->top - 1) {
        *is_kept = true;
        return;
    }
    range->failed |= OPSCOPE__LOST;
    (void)opscope__recorder_end_slow(range, frame, opscope__ticks());
}

static void labels_changed(const opscope_debug_info *chain)
{
    (void)chain;
    opscope__recorder_labels_changed(opscope__hot.thread);
}

/* ---- forks ------------------------------------------------------------------------------------- */

static void fork_prepare(void)
{
    opscope__sandbox_fork_prepare();
    opscope__window_fork_prepare(); /* waits for its thread, which may need any of the locks */
    opscope__settings_lock();
    opscope__segment_lock();
    opscope__window_lock();
    opscope__metrics_fork_prepare();
}

static void fork_child(void)
{
    opscope__sandbox_fork_child();
    opscope__window_fork_child();
    opscope__off_cpu_note_main();
    opscope__recorder_fork_child();
}

static void fork_unlock(void)
{
    opscope__window_unlock();
    opscope__segment_unlock();
    opscope__settings_unlock();
}

static void fork_done(bool is_child)
{
    if (is_child) {
        opscope__recorder_fork_child_done();
    } else {
        opscope__window_fork_parent();
    }
}

/* ------------------------------------------------------------------------------------------------ */

static const struct opscope__observer observer = {
    .thread_begins = thread_begins,
    .thread_refreshed = thread_refreshed,
    .range_taken = range_taken,
    .thread_ends = opscope__recorder_thread_end,
    .thread_freed = opscope__recorder_thread_free,
    .api_used = opscope__recorder_usage,
    .callback_failed = opscope__recorder_callback_error,
    .fork_prepare = fork_prepare,
    .fork_child = fork_child,
    .fork_unlock = fork_unlock,
    .fork_done = fork_done};

static const struct opscope__debug_info_listener listener = {.changed = labels_changed};

static const struct opscope__recorder_hooks hooks = {.resume = opscope__recorder_resume,
                                                     .first_range = opscope__sampling_first_range,
                                                     .apply = opscope__control_apply,
                                                     .poll = opscope__control_poll,
                                                     .is_news = opscope__control_is_news};

static void __attribute__((constructor)) load(void)
{
    opscope__recorder.hooks = &hooks;
    opscope__recorder.long_ticks = UINT64_MAX;
    opscope__off_cpu_note_main();
    opscope__observe(OPSCOPE__PLACE_RECORDER, &observer);
    opscope__debug_info_listen(&listener);
}
