/* record/state.c -- capturing a thread's state (debug info, local callbacks, switch) and entering it
 * on another thread. */
#include <stdlib.h>

#include "opscope/debug_info.h"
#include "record/callback.h"
#include "record/debug_info.h"
#include "record/recorder.h"

struct opscope_state {
    const opscope_debug_info *debug_info;
    struct opscope__callback_list *local;
    bool recording;
};

static struct opscope__callback_list *retain(struct opscope__callback_list *list)
{
    if (list != NULL) {
        opscope__registry_lock();
        list->reference_count++;
        opscope__registry_unlock();
    }
    return list;
}

static void release(struct opscope__callback_list *list)
{
    if (list != NULL) {
        struct opscope__callback *dead = NULL;
        opscope__registry_lock();
        opscope__callback_list_release(list, &dead);
        opscope__registry_unlock();
        opscope__callbacks_drop(dead);
    }
}

int opscope_state_capture(opscope_state **out)
{
    struct opscope__thread *thread = opscope__thread_self();
    opscope_state *state = thread != NULL ? malloc(sizeof *state) : NULL;
    if (state == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    state->debug_info = opscope__debug_info_retain(thread->debug_info);
    state->local = retain(thread->local);
    state->recording = thread->recording;
    *out = state;
    return OPSCOPE_OK;
}

void opscope_state_release(opscope_state *state)
{
    opscope__debug_info_release(state->debug_info);
    release(state->local);
    free(state);
}

/* Moves the three parts of `from` into the thread and those of the thread into `into`. */
static void exchange(struct opscope__thread *thread, const opscope_state *from,
                     opscope_state *into)
{
    opscope_state old = {thread->debug_info, thread->local, thread->recording};
    bool same = old.local == from->local && old.recording == from->recording;
    thread->debug_info = from->debug_info;
    opscope__registry_lock();
    thread->local = from->local;
    opscope__registry_unlock();
    thread->recording = from->recording;
    *into = old;
    opscope__recorder_labels_changed(thread);
    if (!same) {
        opscope__hot_invalidate();
    }
}

int opscope_state_enter(const opscope_state *state, opscope_state **previous)
{
    struct opscope__thread *thread = opscope__thread_self();
    opscope_state *kept = thread != NULL ? malloc(sizeof *kept) : NULL;
    if (kept == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    opscope_state entered = {opscope__debug_info_retain(state->debug_info), retain(state->local),
                             state->recording};
    exchange(thread, &entered, kept);
    *previous = kept;
    return OPSCOPE_OK;
}

void opscope_state_leave(opscope_state *previous)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread != NULL) {
        exchange(thread, previous, previous);
    }
    opscope_state_release(previous);
}

bool opscope_recording_set(bool on)
{
    struct opscope__thread *thread = opscope__thread_self();
    if (thread == NULL) {
        return true;
    }
    bool before = thread->recording;
    if (before != on) {
        thread->recording = on;
        opscope__hot_invalidate();
    }
    return before;
}

bool opscope_recording(void)
{
    const struct opscope__thread *thread = opscope__hot.thread;
    return thread == NULL || thread->recording;
}
