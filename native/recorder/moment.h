/* recorder/moment.h -- what the recorder reads at the ends of a window's parts. */
#ifndef OPSCOPE_RECORDER_MOMENT_H
#define OPSCOPE_RECORDER_MOMENT_H

#include "base/clock.h"
#include "record/thread.h"
#include "recorder/cost.h"
#include "recorder/state.h"

struct opscope__moment {
    uint64_t wall_ns;
    struct opscope__cpu_times cpu; /* so far */
    struct opscope__cost cost;     /* of recording, so far; `counted_count` with the ranges that
                                      bridges have counted */
};

static inline struct opscope__moment opscope__this_moment(void)
{
    struct opscope__moment now;
    opscope__registry_read_cpu(&now.cpu);
    now.wall_ns = opscope__monotonic_ns();
    opscope__recorder_read_cost(&now.cost);
    now.cost.counted_count += opscope__registry_counted_by_bridges();
    return now;
}

/* The segment may be a different one than before, with smaller totals. */
static inline double opscope__since(uint64_t before, uint64_t now)
{
    return now > before ? (double)(now - before) : 0.0;
}

#endif
