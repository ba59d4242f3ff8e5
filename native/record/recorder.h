/* record/recorder.h -- what the rest of the record layer tells the recorder. */
#ifndef OPSCOPE_RECORD_RECORDER_H
#define OPSCOPE_RECORD_RECORDER_H

#include <stdbool.h>
#include <stdbool.h>
#include <stdint.h>

#include "opscope/recorder.h"
#include "record/thread.h"

/* The range is lost (opscope__range_lose): whether it was being recorded and is left out now. */
bool opscope__recorder_lose(const opscope_range *range, void *context);
/* Counts one such range as dropped. Takes the lock of the segment. */
OPSCOPE_API void opscope__recorder_count_lost(void);
/* The thread ends: its table is free for the next new thread. */
void opscope__recorder_thread_end(struct opscope__thread *thread);
void opscope__recorder_thread_free(struct opscope__recorder_thread *state);
/* Callbacks have changed, and label keys perhaps with them. */
void opscope__recorder_labels_follow(const struct opscope__thread *thread);
/* The thread's debug info is another: keeps opscope__hot.label_bits right. */
void opscope__recorder_labels_changed(const struct opscope__thread *thread);
/* An API was used for the first time: into the segment, where there is one. */
void opscope__recorder_usage(void);
/* A callback reported a failure: counted in the segment, where there is one. */
void opscope__recorder_callback_error(void);

/* For record/process.c. With all locks held; then, without any, so that the child's first range
 * makes its segment. */
void opscope__settings_lock(void);
/* False where somebody else has it, or this thread itself. */
bool opscope__settings_trylock(void);
void opscope__settings_unlock(void);
void opscope__recorder_fork_child(void);
void opscope__recorder_fork_child_done(void);

/* For record/window.c: opens and closes a window; the weight in units of 2^-16. */
void opscope__recorder_window_open(uint64_t weight);
void opscope__recorder_window_close(uint64_t on_ns, uint64_t wall_ns);
/* What recording has cost the program's threads so far, in this segment. */
uint64_t opscope__recorder_cost_ns(void);

#endif
