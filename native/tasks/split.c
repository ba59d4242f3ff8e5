/* tasks/split.c -- splits work into pieces for the pool's threads that are free at once.
 *
 * The caller takes pieces from the front, helpers from the back, until none are left. No thread
 * waits for a helper that has not started. A thread that works on the same memory repeatedly
 * usually finds its part in its own cache.
 *
 * A split lies on the caller's stack. A helper joins with the lock held, while the job is queued;
 * its last access is the release of `helpers`. The caller returns when the job is no longer queued
 * and `helpers` is 0: then no helper can join, and all have left.
 */
#include <stddef.h>

#include "base/atomics.h"
#include "opscope/fork.h"
#include "record/observer.h"
#include "tasks/pool.h"

struct split {
    struct opscope__job job;
    opscope_piece piece;
    void *arg;
    int count;
    int taken;      /* atomic: pieces taken, plus one for each failed try */
    int from_back;  /* atomic: pieces that helpers took */
    int places;     /* helpers that may still join; under the lock */
    bool is_queued; /* written under the lock, with release; the caller's acquire may see it before
                       it takes the lock */
    int helpers;    /* written under the lock, with release; partner: the caller's acquire */
};

static bool take(struct split *split)
{
    return opscope__add_relaxed(&split->taken, 1) < split->count;
}

static void leave_queue(struct split *split)
{
    if (split->is_queued) {
        opscope__pool_take_out(&split->job);
        opscope__pool_expected -= split->places;
        opscope__store_release(&split->is_queued, false);
    }
}

/* With the lock held; releases it meanwhile. */
static bool help(struct opscope__job *job)
{
    struct split *split = (struct split *)job;
    opscope__store_relaxed(&split->helpers, split->helpers + 1);
    split->places--;
    opscope__pool_expected--;
    if (split->places == 0) {
        leave_queue(split);
    }
    opscope__pool_unlock();
    while (take(split)) {
        split->piece(split->count - 1 - opscope__add_relaxed(&split->from_back, 1), split->arg);
    }
    opscope__pool_lock();
    leave_queue(split);
    opscope__store_release(&split->helpers, split->helpers - 1);
    opscope__pool_finished();
    return true;
}

/* Called when the caller's own part is done. */
static void finish(struct split *split)
{
    if (opscope__load_acquire(&split->is_queued)) {
        opscope__pool_lock();
        leave_queue(split);
        opscope__pool_unlock();
    }
    uint64_t started = 0;
    while (opscope__load_acquire(&split->helpers) != 0) {
        if (!opscope__pool_spin(&started)) {
            opscope__pool_lock();
            while (split->helpers != 0) {
                opscope__pool_await();
            }
            opscope__pool_unlock();
            return;
        }
    }
}

void opscope_split(int count, opscope_piece piece, void *arg)
{
    struct split split = {.piece = piece, .arg = arg, .count = count};
    bool is_guest = false;
    if (count > 1) {
        opscope__process_start();
        opscope__pool_lock();
        split.places = opscope__pool_places();
        split.places = split.places < count - 1 ? split.places : count - 1;
        if (split.places > 0) {
            split.job.run = help;
            split.is_queued = true;
            opscope__pool_expected += split.places;
            is_guest = opscope__pool_enter();
            opscope__pool_post(&split.job, split.places, true);
        } else {
            opscope__pool_unlock();
        }
    }
    for (int i = 0; take(&split); i++) {
        piece(i, arg);
    }
    finish(&split);
    if (is_guest) {
        opscope__pool_leave();
    }
}
