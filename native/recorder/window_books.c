/* recorder/window_books.c -- see recorder/window_books.h. */
#include "recorder/window_books.h"

#include <math.h>

static const double LATE_LIMIT = 32.0;

void opscope__window_books_plan(opscope__window_books *books, double window_ns, double period_ns)
{
    opscope__window_weight_plan(&books->known, window_ns, period_ns);
    opscope__window_weight_plan(&books->rest, window_ns, period_ns);
}

void opscope__window_books_resize(opscope__window_books *books, double ratio)
{
    opscope__window_weight_resize(&books->known, ratio);
    opscope__window_weight_resize(&books->rest, ratio);
}

void opscope__window_books_note_late(opscope__window_books *books, double planned_ns, double ns)
{
    books->late_count = books->late_count < LATE_LIMIT ? books->late_count + 1.0 : LATE_LIMIT;
    const double late = ns > planned_ns && ns < LATE_LIMIT * planned_ns ? ns - planned_ns : 0.0;
    books->late_ns += (late - books->late_ns) / books->late_count;
}

struct opscope__window_weights opscope__window_books_weights(opscope__window_books *books,
                                                             double on_ns)
{
    opscope__window_weight_expect(&books->known, on_ns + books->late_ns);
    opscope__window_weight_expect(&books->rest, on_ns + books->late_ns);
    return (struct opscope__window_weights){.known = opscope__window_weight_now(&books->known),
                                            .rest = opscope__window_weight_now(&books->rest)};
}

struct costs {
    double ranges_ns;    /* of recorded ranges, as measured in loops */
    double begun_ns;     /* of preparing known threads, in this program */
    double begun_new_ns; /* likewise, new ones */
};

static struct costs costs_between(const struct opscope__moment *from,
                                  const struct opscope__moment *to)
{
    const double begun = opscope__since(from->cost.begun_ns, to->cost.begun_ns);
    const double all = opscope__since(from->cost.sampled_ns, to->cost.sampled_ns);
    const double begun_new = opscope__since(from->cost.begun_new_ns, to->cost.begun_new_ns);
    return (struct costs){.ranges_ns = fmax(0.0, all - begun),
                          .begun_ns = fmax(0.0, begun - begun_new) * to->cost.factor,
                          .begun_new_ns = begun_new * to->cost.factor};
}

/* The part of the ranges' cost that new threads had in the counted part. Their part of the CPU time
 * may be much smaller or larger: a thread that starts others runs few ranges in much time. */
static double new_share(const struct opscope__moment *start, const struct opscope__moment *stop)
{
    const double cells = opscope__since(start->cost.cells_ns, stop->cost.cells_ns);
    const double of_new = opscope__since(start->cost.cells_new_ns, stop->cost.cells_new_ns);
    return stop->cpu.has_new && cells > 0.0 ? fmin(1.0, of_new / cells) : 0.0;
}

/* Some of the CPU time was the program's, whatever preparing threads is estimated to have taken. */
static double without(double cpu_ns, double begun_ns)
{
    static const double LIMIT = 0.9;
    return cpu_ns - fmin(begun_ns, fmax(0.0, LIMIT * cpu_ns));
}

static double known_between(const struct opscope__moment *from, const struct opscope__moment *to)
{
    return opscope__since(from->cpu.known_ns, to->cpu.known_ns);
}

/* The process clock may lag, which can make the difference negative. */
static double rest_between(const struct opscope__moment *from, const struct opscope__moment *to)
{
    return (double)(int64_t)(to->cpu.rest_ns - from->cpu.rest_ns);
}

double opscope__window_books_count(opscope__window_books *books,
                                   const struct opscope__window_period *period)
{
    const struct opscope__moment *last = period->last, *start = period->start, *stop = period->stop;
    const struct costs cost = costs_between(start, stop), cost_outside = costs_between(last, start);
    /* Ranges that windows do not count, most of them in warm-ups, are the same threads'. */
    const double rest_share = new_share(start, stop);
    struct opscope__window_weight_cycle part = {
        .weight = period->weights.known,
        .on = period->is_usual ? opscope__since(start->wall_ns, stop->wall_ns) : 0.0,
        .wall = period->is_usual ? opscope__since(last->wall_ns, stop->wall_ns) : 0.0,
        .inside = without(known_between(start, stop), cost.begun_ns),
        .outside = without(known_between(last, start), cost_outside.begun_ns),
        .remaining = period->remaining,
        .recording = cost.ranges_ns * (1.0 - rest_share),
        .recording_outside = cost_outside.ranges_ns * (1.0 - rest_share),
        .slowdown = stop->cost.slowdown};
    const double work = opscope__window_weight_count(&books->known, &part);
    part.weight = period->weights.rest;
    part.inside = without(rest_between(start, stop), cost.begun_new_ns);
    part.outside = without(rest_between(last, start), cost_outside.begun_new_ns);
    part.recording = cost.ranges_ns * rest_share;
    part.recording_outside = cost_outside.ranges_ns * rest_share;
    const double rest_work = opscope__window_weight_count(&books->rest, &part);
    return work + (stop->cpu.has_new ? rest_work : 0.0);
}

double opscope__window_books_missing(const opscope__window_books *books, bool has_new,
                                     double slowdown_error)
{
    return opscope__window_weight_missing(&books->known, slowdown_error) +
           (has_new ? opscope__window_weight_missing(&books->rest, slowdown_error) : 0.0);
}
