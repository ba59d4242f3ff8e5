/* recorder/labels.c -- a thread's label set, as in the keys of its cells. */
#include "base/atomics.h"
#include "record/debug_info.h"
#include "recorder/state.h"
#include "segment/names.h"

static uint64_t find_label_set(const opscope_debug_info *chain)
{
    struct opscope__recorder *recorder = &opscope__recorder;
    opscope__segment_lock();
    uint32_t id =
        recorder->segment.base != NULL ? opscope__names_label_set(&recorder->segment, chain) : 0;
    uint64_t found = (uint64_t)recorder->label_epoch << 32 | id;
    opscope__segment_unlock();
    /* Partner: the load in opscope__recorder_labels_changed; any thread would store the same
     * value. */
    opscope__store_relaxed(&((struct opscope__debug_info_node *)(uintptr_t)chain)->label_set,
                           found);
    return found;
}

void opscope__recorder_labels_changed(const struct opscope__thread *thread)
{
    const opscope_debug_info *chain = thread->debug_info;
    const uint32_t epoch = opscope__load_relaxed(&opscope__recorder.label_epoch);
    uint64_t found = 0;
    if (chain != NULL) {
        found = opscope__load_relaxed(&((const struct opscope__debug_info_node *)chain)->label_set);
        if (found >> 32 != epoch) {
            found = find_label_set(chain);
        }
    }
    opscope__hot.label_bits = (found & UINT32_MAX) << 40;
    if (thread->recorder != NULL) {
        thread->recorder->label_epoch = epoch;
    }
}

void opscope__recorder_labels_follow(const struct opscope__thread *thread)
{
    struct opscope__recorder_thread *state = thread->recorder;
    if (state != NULL) {
        state->frames[0].key = opscope__load_relaxed(&opscope__recorder.unseen_phase_bits);
    }
    if (state != NULL &&
        state->label_epoch != opscope__load_relaxed(&opscope__recorder.label_epoch)) {
        opscope__recorder_labels_changed(thread);
    }
}
