/* tensor/parallel.c -- splitting a range of work over the fork pool. */
#include "tensor/parallel.h"

#include "opscope/fork.h"

struct pieces {
    int64_t total;
    int64_t count;
    opscope__part part;
    void *arg;
};

static void run(int index, void *arg)
{
    const struct pieces *all = arg;
    all->part(all->total * index / all->count, all->total * (index + 1) / all->count, all->arg);
}

void opscope__parallel(int64_t count, int64_t grain, opscope__part part, void *arg)
{
    struct pieces all = {count, count / (grain > 0 ? grain : 1), part, arg};
    if (all.count > 1) {
        int threads = opscope_pool_threads();
        all.count = all.count < threads ? all.count : threads;
    }
    if (all.count > 1) {
        opscope_split((int)all.count, run, &all);
    } else if (count > 0) {
        part(0, count, arg);
    }
}
