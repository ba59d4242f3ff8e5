/* recorder/counted_part.c -- see recorder/counted_part.h. */
#include "recorder/counted_part.h"

#include "recorder/gap.h"

/* Of the period: by as much stops move the end of the part at most, so that the next window is
 * rarely late. */
static const double ALLOWED_PART = 0.65;

static uint64_t set_timer(opscope__counted_part *counted, uint64_t now_ns)
{
    counted->due_ns = counted->end_ns;
    if (counted->has_steps && counted->end_ns - now_ns > OPSCOPE__COUNTED_PART_STEP_NS) {
        counted->due_ns = now_ns + OPSCOPE__COUNTED_PART_STEP_NS;
    }
    return counted->due_ns;
}

uint64_t opscope__counted_part_begin(opscope__counted_part *counted, double length_ns,
                                     double period_ns, bool has_quota, uint64_t now_ns)
{
    *counted = (opscope__counted_part){
        .end_ns = now_ns + (uint64_t)length_ns,
        .allowed_ns = (uint64_t)(ALLOWED_PART * period_ns),
        .has_steps = has_quota && length_ns >= OPSCOPE__COUNTED_PART_LONG_NS};
    return set_timer(counted, now_ns);
}

uint64_t opscope__counted_part_go_on(opscope__counted_part *counted, uint64_t now_ns)
{
    const uint64_t late_ns = now_ns > counted->due_ns ? now_ns - counted->due_ns : 0;
    if (counted->has_steps && late_ns >= OPSCOPE__GAP_LATE_NS) {
        const uint64_t stopped_ns = late_ns + OPSCOPE__COUNTED_PART_STEP_NS / 2;
        const uint64_t moved_ns =
            stopped_ns < counted->allowed_ns ? stopped_ns : counted->allowed_ns;
        counted->end_ns += moved_ns;
        counted->allowed_ns -= moved_ns;
    }
    return now_ns < counted->end_ns ? set_timer(counted, now_ns) : 0;
}
