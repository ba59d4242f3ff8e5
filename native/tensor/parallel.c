/* tensor/parallel.c -- splitting a range of work over the fork pool. */
#include "tensor/parallel.h"

#include <stddef.h>

#include "opscope/fork.h"

enum { PIECE_LIMIT = 64 };

struct piece {
    int64_t begin, end;
    opscope__part part;
    void *arg;
    opscope_future *future; /* NULL: could not be forked */
};

static int run(void *arg)
{
    const struct piece *piece = arg;
    piece->part(piece->begin, piece->end, piece->arg);
    return OPSCOPE_OK;
}

static void split(int64_t count, int pieces, opscope__part part, void *arg)
{
    struct piece all[PIECE_LIMIT];
    for (int i = pieces - 1; i >= 0; i--) {
        all[i] = (struct piece){count * i / pieces, count * (i + 1) / pieces, part, arg, NULL};
        if (i == 0 || opscope_fork(run, &all[i], &all[i].future) != OPSCOPE_OK) {
            all[i].future = NULL;
            run(&all[i]);
        }
    }
    for (int i = 1; i < pieces; i++) {
        int result;
        if (all[i].future != NULL) {
            opscope_wait(all[i].future, &result);
            opscope_future_release(all[i].future);
        }
    }
}

void opscope__parallel(int64_t count, int64_t grain, opscope__part part, void *arg)
{
    int64_t pieces = count / (grain > 0 ? grain : 1);
    if (pieces > 1) {
        int threads = opscope_pool_threads();
        pieces = pieces < threads ? pieces : threads;
        pieces = pieces < PIECE_LIMIT ? pieces : PIECE_LIMIT;
    }
    if (pieces > 1) {
        split(count, (int)pieces, part, arg);
    } else if (count > 0) {
        part(0, count, arg);
    }
}
