/* record/state.c -- captures a thread's state (debug info, local callbacks, switch) and enters it
 * on another thread. */
#include <pthread.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "opscope/debug_info.h"
#include "record/callback.h"
#include "record/debug_info.h"
#include "record/demand.h"

enum { WORD_LIMIT = 4 };

struct opscope_state {
    const opscope_debug_info *debug_info;
    struct opscope__callback_list *local;
    bool recording;
    int word_count;
    uintptr_t words[WORD_LIMIT];
};

/* Words of the layers above. Entries are written once, under the lock; `carrier_count` publishes
 * them. */
static pthread_mutex_t carrier_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uintptr_t (*read)(void);
    uintptr_t (*exchange)(uintptr_t word);
} carriers[WORD_LIMIT];
static int carrier_count; /* atomic */

int opscope_state_carry(uintptr_t (*read)(void), uintptr_t (*exchange)(uintptr_t word))
{
    int status = OPSCOPE_ERR_FULL;
    pthread_mutex_lock(&carrier_lock);
    if (carrier_count < WORD_LIMIT) {
        carriers[carrier_count].read = read;
        carriers[carrier_count].exchange = exchange;
        /* Partner: the load in opscope_state_capture. */
        opscope__store_release(&carrier_count, carrier_count + 1);
        status = OPSCOPE_OK;
    }
    pthread_mutex_unlock(&carrier_lock);
    return status;
}

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
    state->word_count = opscope__load_acquire(&carrier_count);
    for (int i = 0; i < state->word_count; i++) {
        state->words[i] = carriers[i].read();
    }
    *out = state;
    return OPSCOPE_OK;
}

void opscope_state_release(opscope_state *state)
{
    opscope__debug_info_release(state->debug_info);
    release(state->local);
    free(state);
}

/* Moves the parts of `from` into the thread, and the thread's previous parts into `into`. */
static void exchange(struct opscope__thread *thread, const opscope_state *from, opscope_state *into)
{
    opscope_state old = {.debug_info = thread->debug_info,
                         .local = thread->local,
                         .recording = thread->recording,
                         .word_count = from->word_count};
    for (int i = 0; i < from->word_count; i++) {
        old.words[i] = carriers[i].exchange(from->words[i]);
    }
    bool same_local = old.local == from->local;
    bool same = same_local && old.recording == from->recording;
    thread->debug_info = from->debug_info;
    opscope__registry_lock();
    thread->local = from->local;
    opscope__registry_unlock();
    thread->recording = from->recording;
    *into = old;
    opscope__debug_info_changed(thread);
    if (!same) {
        opscope__hot_invalidate();
    }
    if (!same_local) {
        opscope__demand_changed();
    }
}

int opscope_state_enter(const opscope_state *state, opscope_state **previous)
{
    struct opscope__thread *thread = opscope__thread_self();
    opscope_state *kept = thread != NULL ? malloc(sizeof *kept) : NULL;
    if (kept == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    opscope_state entered = *state;
    opscope__debug_info_retain(entered.debug_info);
    retain(entered.local);
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
