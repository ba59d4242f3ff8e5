/* recorder/window_compare.c -- see recorder/window_compare.h. */
#include "recorder/window_compare.h"

#include <math.h>

#include "record/thread.h"
#include "recorder/cost_compare.h"
#include "recorder/state.h"

void opscope__window_compare_begin(opscope__window_compare *compare)
{
    *compare = (opscope__window_compare){.is_exact = true};
    compare->first = opscope__registry_counted(&compare->is_exact, &compare->busy);
    opscope__recorder_count_few(true);
}

void opscope__window_compare_count(opscope__window_compare *compare)
{
    compare->begin = opscope__registry_counted(&compare->is_exact, &compare->busy);
    compare->from = opscope__this_moment();
}

void opscope__window_compare_end(opscope__window_compare *compare)
{
    compare->to = opscope__this_moment();
    const uint64_t count = opscope__registry_counted(&compare->is_exact, &compare->busy);
    compare->count = opscope__since(compare->begin, count);
    compare->all = opscope__since(compare->first, count);
    opscope__recorder_count_few(false);
}

/* The program's CPU time between two moments; `has_new`: that of all threads. */
static double program_ns(const struct opscope__moment *from, const struct opscope__moment *to,
                         bool has_new)
{
    const double known = opscope__since(from->cpu.known_ns, to->cpu.known_ns);
    /* The process clock may lag, which can make the difference negative. */
    const double rest = (double)(int64_t)(to->cpu.rest_ns - from->cpu.rest_ns);
    const double begun = opscope__since(from->cost.begun_ns, to->cost.begun_ns) * to->cost.factor;
    return fmax(0.0, known + (has_new ? rest : 0.0) - begun);
}

static double warm_count(const opscope__window_compare *compare)
{
    const struct opscope__cost *from = &compare->to.cost, *to = &compare->warm.cost;
    return opscope__since(from->counted_count, to->counted_count) +
           opscope__since(from->in_no_cell_count, to->in_no_cell_count);
}

void opscope__window_compare_warm_up(opscope__window_compare *compare,
                                     const struct opscope__moment *now, opscope__warm_up *warm_up)
{
    const bool has_new = now->cpu.has_new;
    compare->warm = *now;
    if (compare->is_exact) {
        opscope__warm_up_learn(warm_up, program_ns(&compare->to, now, has_new), warm_count(compare),
                               program_ns(&compare->from, &compare->to, has_new), compare->count);
    }
}

void opscope__window_compare_report(const opscope__window_compare *compare,
                                    const struct opscope__moment *stop, double known_weight,
                                    double rest_weight)
{
    const struct opscope__cost *from = &compare->warm.cost, *to = &stop->cost;
    const bool has_new = stop->cpu.has_new;
    const struct opscope__cost_comparison comparison = {
        .recorded_ns = program_ns(&compare->warm, stop, has_new),
        .recorded_count = opscope__since(from->counted_count, to->counted_count),
        .cost_ns = opscope__since(from->counted_ns, to->counted_ns),
        .few_cost_ns = opscope__since(from->few_ns, to->few_ns),
        .few_ns = program_ns(&compare->from, &compare->to, has_new),
        .few_count = compare->count,
        .warm_ns = program_ns(&compare->to, &compare->warm, has_new),
        .warm_count = warm_count(compare),
        .weight = has_new ? rest_weight : known_weight,
        .is_exact = compare->is_exact,
        .is_shared = compare->busy > 1};
    opscope__recorder_compare_cost(&comparison);
    /* To count has a cost as well. */
    const double recorded = opscope__since(from->sampled_ns, to->sampled_ns) -
                            opscope__since(from->begun_ns, to->begun_ns);
    const double cost = comparison.few_cost_ns + recorded - comparison.cost_ns;
    if (comparison.recorded_count > 0.0) {
        opscope__recorder_add_cost_ns(compare->all * fmax(0.0, cost) / comparison.recorded_count);
    }
}
