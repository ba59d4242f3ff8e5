/* tensor/kernels/parallel.c -- splits a range of work over the fork pool.
 *
 * Each thread's share is split into several steps, which free threads take: processors rarely run
 * equally fast, and with one half each the faster one would wait for the other. The caller takes
 * steps from the front, the others from the back, so that each thread mostly uses memory it used
 * before.
 */
#include "tensor/kernels/parallel.h"

#include "base/atomics.h"
#include "opscope/fork.h"

enum {
    STEPS = 4
}; /* of a share: the last step to end is late by at most about an eighth of the work */

struct work {
    int64_t total;
    int64_t pieces;
    int64_t taken, from_front,
        from_back; /* atomic, relaxed: pieces; the split orders their memory */
    opscope__part part;
    void *arg;
};

/* Approximately one thread's share. */
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
