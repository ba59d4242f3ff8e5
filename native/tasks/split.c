/* record/split.c -- work split into pieces, for the threads of the pool that are free at once.
 *
 * The caller takes pieces from the front, the others from the back, until none are left: nobody
 * waits for a thread that is yet to come, and a thread that works on the same memory again and
 * again mostly finds its part of it in its own cache.
 *
 * What there is of a split lies on the caller's stack. A helper joins with the lock held, while the
 * job is queued; its last touch is the release of `helpers`. The caller leaves when the job is not
 * queued any more and `helpers` is 0, so when nobody can join and all have left.
 */
#include <stddef.h>

#include "base/atomics.h"
#include "opscope/fork.h"
#include "record/pool.h"
#include "record/process.h"

struct split {
    struct opscope__job job;
    opscope_piece piece;
    void *arg;
    int count;
    int taken;      /* atomic: the pieces that were taken, and each failing try */
    int from_back;  /* atomic: those of them that helpers took */
    int places;     /* helpers that may still join; under the lock */
    bool is_queued; /* written under the lock, with release; the caller's acquire sees it early */
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

/* With the lock held; lets go of it in between. */
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

/* The caller's own part is done. */
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
