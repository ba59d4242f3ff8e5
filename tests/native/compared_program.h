/* tests/native/compared_program.h -- a simulated program whose cost of recording is known, and the
 * comparisons of its windows. */
#ifndef OPSCOPE_TESTS_COMPARED_PROGRAM_H
#define OPSCOPE_TESTS_COMPARED_PROGRAM_H

#include <math.h>

#include "check.h"
#include "record/random.h"
#include "recorder/cost_compare.h"

static const double ON_NS = 2e6, FEW_NS = 8e6, LOOP_NS = 100.0;
static const double KNOWN = 1.2, KNOWN_ERROR = 0.6;
/* The part of the cost that a range has where few are drawn, as far as the recorder knows. */
static const double IN_FEW = 0.1;

/* A range takes `range_ns` of work on average, in each stretch of time up to `spread` times more or
 * less, and recording it costs `factor` times LOOP_NS. `inside`: as IN_FEW, but in truth. In half
 * of the windows a range takes 1 + `phases` times as long as in the others. */
struct program {
    double range_ns, spread, factor, inside, phases;
    bool is_shared; /* by several threads */
};

static inline double varied(const struct program *program, opscope__random *random)
{
    return program->range_ns * (1.0 + program->spread * (2.0 * opscope__random_unit(random) - 1.0));
}

/* The number of drawn ones among that many ranges, about. */
static inline double drawn(opscope__random *random, double count)
{
    const double mean = count * OPSCOPE__COST_COMPARE_PROB;
    double sum = -6.0;
    for (int i = 0; i < 12; i++) {
        sum += opscope__random_unit(random);
    }
    return fmax(0.0, floor(mean + sum * sqrt(mean) + 0.5));
}

static inline void add_window(opscope__cost_compare *compare, const struct program *program,
                              opscope__random *random)
{
    const double cost_ns = program->factor * LOOP_NS;
    const double times = opscope__random_unit(random) < 0.5 ? 1.0 + program->phases : 1.0;
    const double few_ns = times * varied(program, random) + program->inside * cost_ns;
    const double count = ON_NS / (times * varied(program, random) + cost_ns);
    const struct opscope__cost_comparison window = {
        .recorded_ns = ON_NS,
        .weight = 125.0,
        .recorded_count = count,
        .cost_ns = count * LOOP_NS,
        .few_cost_ns = IN_FEW * count * LOOP_NS,
        .few_ns = FEW_NS,
        .few_count = drawn(random, FEW_NS / few_ns) / OPSCOPE__COST_COMPARE_PROB,
        .is_exact = true,
        .is_shared = program->is_shared};
    opscope__cost_compare_add(compare, &window);
}

#endif
