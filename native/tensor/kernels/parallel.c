/* tensor/parallel.c -- splitting a range of work over the fork pool.
 *
 * Each thread's share is taken in a few steps, by whoever is free: processors are rarely equally
 * fast at a moment, and with one half each the faster one would wait for the other. The caller
 * takes from the front, the others from the back, so that each mostly meets the memory it worked on
 * before.
 */
#include "tensor/parallel.h"

#include "base/atomics.h"
#include "opscope/fork.h"

enum {
    STEPS = 4
}; /* of a share: the last one to end is at most about an eighth of the work late */

struct work {
    int64_t total;
    int64_t pieces;
    int64_t taken, from_front,
        from_back; /* atomic, relaxed: pieces; the split orders what is in them */
    opscope__part part;
    void *arg;
};

/* One thread's share, more or less. */
static void run(int index, void *arg)
{
    struct work *work = arg;
    while (opscope__add_relaxed(&work->taken, 1) < work->pieces) {
        int64_t piece = index == 0 ? opscope__add_relaxed(&work->from_front, 1)
                                   : work->pieces - 1 - opscope__add_relaxed(&work->from_back, 1);
        work->part(work->total * piece / work->pieces, work->total * (piece + 1) / work->pieces,
                   work->arg);
    }
}

void opscope__parallel(int64_t count, int64_t grain, opscope__part part, void *arg)
{
    int64_t shares = count / (grain > 0 ? grain : 1);
    if (shares > 1) {
        int threads = opscope_pool_threads();
        shares = shares < threads ? shares : threads;
    }
    if (shares > 1) {
        int64_t pieces = shares * STEPS;
        struct work work = {
            .total = count, .pieces = pieces < count ? pieces : count, .part = part, .arg = arg};
        opscope_split((int)shares, run, &work);
    } else if (count > 0) {
        part(0, count, arg);
    }
}
