/* tasks/watch.h -- lets one watcher, from a layer above, observe tasks as they are forked and
 * run. */
#ifndef OPSCOPE_TASKS_WATCH_H
#define OPSCOPE_TASKS_WATCH_H

#include <stdint.h>

/* A running task. The fields belong to the watcher. */
struct opscope__task_run {
    void *watcher;
    void *record;
};

struct opscope__task_watch {
    /* Around the forking of a task. fork_begins returns the current time and sets the task's
     * number; both are 0 if nothing is being watched. */
    uint64_t (*fork_begins)(uint64_t *task_number);
    void (*fork_ended)(uint64_t begun, uint64_t task_number);
    /* Around the task's run, on the thread that runs it. */
    void (*run_begins)(struct opscope__task_run *run, uint64_t task_number);
    void (*run_ended)(const struct opscope__task_run *run);
};

/* Set in a constructor, before any task is forked; NULL: no watcher. */
extern const struct opscope__task_watch *opscope__task_watch;

#endif
