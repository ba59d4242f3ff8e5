/* recorder/cost.c -- see recorder/cost.h. */
#include "recorder/cost.h"

#include <math.h>
#include <stdlib.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/record.h"
#include "opscope/recorder.h"
#include "recorder/cost_compare.h"
#include "recorder/state.h"
#include "segment/op_cost.h"
#include "segment/table.h"

enum { ONE_PPM = 1000000, PS_PER_NS = 1000 };

void opscope_recorder_extra_cost(uint32_t op_id, uint64_t extra_ps)
{
    opscope__op_cost_set(op_id, extra_ps);
}

void opscope__cost_extra_is_counted(uint32_t op_id)
{
    opscope__op_cost_set_counted(op_id);
}

void opscope__cost_where_few(uint32_t op_id, double share)
{
    opscope__op_cost_set_few(op_id, share);
}

void opscope__cost_bridge_counts(uint32_t op_id)
{
    opscope__op_cost_set_bridge_counts(op_id);
}

uint64_t opscope__cost_of_range_ps(const opscope_segment_header *header, uint32_t op_id)
{
    return header->record_cost_ps + opscope__op_cost_extra(op_id);
}

static uint64_t in_no_cell_count; /* add_relaxed by any thread */

/* Bridges that count ranges count only operators, not the nodes of a backward, for example. */
static bool counts_among_operators(uint32_t op_id)
{
    const opscope_op *op = opscope_op_by_id(op_id);
    return op == NULL || op->scope == OPSCOPE_FUNCTION;
}

void opscope__cost_in_no_cell(opscope_segment_header *header, uint32_t op_id)
{
    opscope__add_relaxed(&header->uncounted_cost_ps, opscope__cost_of_range_ps(header, op_id));
    if (!opscope__op_cost_bridge_counts(op_id) && counts_among_operators(op_id)) {
        opscope__add_relaxed(&in_no_cell_count, 1);
    }
}

/* ---- in the loop and in the program --------------------------------------------------------------- */

/* A probe above the limit was interrupted. */
enum { PROBE_LIMIT_TICKS = 60000, PRIOR_PROBES = 32, LOOP_PROBES = 16 };
static const double LEAST_FACTOR = 0.5, MOST_FACTOR = 50.0;
/* What a framework's own part of a range costs more in a program, per picosecond of its extra cost
 * in a loop: each operator has its own code for it. Measured with PyTorch 2.13.0 on a Zen 5, by
 * recording in some steps and not in others: all of a range cost 1.74 times as much as in a loop in
 * a small training step, 1.46 in GPT-2, 2.2 in BERT, 3.7 in a ResNet. With this figure and the
 * probes it would be 1.6, 1.6, 2.4 and 3.4. */
static const double FRAMEWORK_MORE = 0.5;
/* The standard error of the factor for a framework's own part and for the rest, relative to it or
 * to 1. Of a framework's part little is measured, and beside other programs that use the
 * processor's caches, it costs many times as much. */
static const double FRAMEWORK_ERROR = 1.0, USUAL_ERROR = 0.5;

/* Of the probes in the program; add_relaxed by any thread. */
static struct {
    uint64_t count, ticks;
} probes;
/* The first ones in the loop; relaxed. */
static uint64_t loop_probes[LOOP_PROBES], loop_probe_count;
/* Of outer ranges, in the program; likewise. */
static struct {
    uint64_t count, ticks;
} outer;
static uint32_t is_in_loop;           /* relaxed */
static double lacking_ticks;          /* segment lock: of a probe in the loop */
static opscope__cost_compare compare; /* segment lock */
static double last_factor = 1.0;      /* segment lock: of sampled ranges */
/* Segment lock: of opscope__cost_setup_end, so far; and of it, on new threads. */
static uint64_t begun_ps, begun_new_ps;

uint64_t opscope__cost_probe_clock(void)
{
    return opscope__ticks();
}

uint64_t opscope__cost_setup_start(void)
{
    return opscope__thread_cpu_ns();
}

void opscope__cost_setup_end(uint64_t start_ns)
{
    const uint64_t ns = opscope__thread_cpu_ns() - start_ns;
    const struct opscope__thread *thread = opscope__hot.thread; /* NULL: no memory for one */
    /* The lock keeps the segment open meanwhile. */
    opscope__segment_lock();
    if (opscope__recorder.segment.base != NULL) {
        opscope_segment_header *header = opscope__segment_header(&opscope__recorder.segment);
        /* It was measured in this program, so the factor is taken out that a reader applies. */
        const uint64_t factor_ppm = opscope__load_relaxed(&header->cost_factor_ppm);
        const double factor = factor_ppm != 0 ? (double)factor_ppm / ONE_PPM : 1.0;
        const uint64_t ps = (uint64_t)((double)ns * PS_PER_NS / factor);
        opscope__add_relaxed(&header->uncounted_cost_ps, ps);
        begun_ps += ps;
        begun_new_ps += thread != NULL && opscope__load_relaxed(&thread->is_new) != 0 ? ps : 0;
    }
    opscope__segment_unlock();
}

void opscope__cost_probe(uint64_t ticks)
{
    if (ticks >= PROBE_LIMIT_TICKS) {
        return;
    }
    if (!opscope__load_relaxed(&is_in_loop)) {
        opscope__add_relaxed(&probes.ticks, ticks);
        opscope__add_relaxed(&probes.count, 1);
        return;
    }
    const uint64_t place = opscope__add_relaxed(&loop_probe_count, 1);
    if (place < LOOP_PROBES) {
        opscope__store_relaxed(&loop_probes[place], ticks);
    }
}

void opscope__cost_outer(uint64_t ticks, bool is_range)
{
    if (ticks < PROBE_LIMIT_TICKS) {
        opscope__add_relaxed(&outer.ticks, ticks);
        opscope__add_relaxed(&outer.count, is_range);
    }
}

void opscope__cost_probe_lacks(double ticks)
{
    opscope__segment_lock();
    lacking_ticks = ticks;
    opscope__segment_unlock();
}

void opscope__cost_probe_loop(bool is_loop)
{
    opscope__store_relaxed(&is_in_loop, is_loop);
}

static int by_value(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The mean of the middle half: the first one runs cold, and takes ten times as long as the others.
 * There is at least one. */
static double loop_ticks(void)
{
    uint64_t sorted[LOOP_PROBES];
    const uint64_t all = opscope__load_relaxed(&loop_probe_count);
    const size_t count = all < LOOP_PROBES ? (size_t)all : LOOP_PROBES;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = opscope__load_relaxed(&loop_probes[i]);
    }
    qsort(sorted, count, sizeof sorted[0], by_value);
    const size_t cut = count / 4;
    double sum = 0.0;
    for (size_t i = cut; i < count - cut; i++) {
        sum += (double)sorted[i];
    }
    return sum / (double)(count - 2 * cut);
}

static bool has_loop_probes(void)
{
    return opscope__load_relaxed(&loop_probe_count) != 0;
}

/* With the segment lock held: how much longer a probe takes in the program than in the loop. A
 * difference, in which what reading the clock takes is not contained. */
static double more_ticks(void)
{
    const double count = (double)opscope__load_relaxed(&probes.count);
    if (!has_loop_probes() || count == 0.0) {
        return 0.0;
    }
    const double in_program = (double)opscope__load_relaxed(&probes.ticks) / count;
    const double in_loop = loop_ticks() + lacking_ticks;
    return (in_program - in_loop) * count / (count + PRIOR_PROBES);
}

bool opscope__cost_wants_comparison(uint64_t window_number)
{
    return opscope__cost_compare_is_wanted(&compare, window_number, last_factor);
}

void opscope__cost_add_comparison(const struct opscope__cost_comparison *window)
{
    opscope__cost_compare_add(&compare, window);
}

/* ---- sums over a segment -------------------------------------------------------------------------- */

/* In picoseconds, as measured in loops. */
struct sums {
    unsigned __int128 sampled_ps, outer_ps, counted_ps;
    unsigned __int128 new_ps; /* the part of sampled_ps in tables of new threads */
    unsigned __int128
        extra_ps;  /* the part of sampled_ps and outer_ps beyond what every range costs */
    double few_ps; /* of as many ranges as counted_ps, where they are only counted */
    uint64_t counted_count, outer_count;
    uint64_t all_count; /* of ranges in sampled_ps and outer_ps */
};

/* The owner of a cell adds without synchronisation; an aligned load returns the old or the new
 * value. While operators are sampled, the cells that count every range are those of outer ranges.
 */
static void OPSCOPE__UNSYNCHRONIZED add_cell(struct sums *sums,
                                             const opscope_segment_header *header,
                                             const volatile opscope_cell *cell)
{
    const uint64_t samples = cell->sample_count;
    /* Its owner adds to one after the other, so they may differ by a range at this moment. */
    const uint64_t calls = cell->weight >> OPSCOPE_SEGMENT_WEIGHT_LOG2;
    const bool is_outer = calls + 1 - samples <= 2;
    const uint32_t op_id = (uint32_t)cell->key;
    const uint64_t range_ps = header->record_cost_ps + opscope__op_cost_extra(op_id);
    const unsigned __int128 cost_ps = (unsigned __int128)samples * range_ps;
    sums->all_count += samples;
    sums->extra_ps += (unsigned __int128)samples * (range_ps - header->record_cost_ps);
    if (is_outer) {
        sums->outer_ps += cost_ps;
        sums->outer_count += samples;
        return;
    }
    sums->sampled_ps += cost_ps;
    if (opscope__op_cost_bridge_counts(op_id)) {
        sums->counted_ps += cost_ps;
        return;
    }
    sums->counted_count += counts_among_operators(op_id) ? samples : 0;
    const unsigned __int128 counted_ps = opscope__op_cost_is_counted(op_id)
                                             ? (unsigned __int128)samples * header->record_cost_ps
                                             : cost_ps;
    sums->counted_ps += counted_ps;
    sums->few_ps += opscope__op_cost_few(op_id) * (double)counted_ps;
}

static struct sums sum_cells(const opscope__segment *segment)
{
    const opscope_segment_header *header = opscope__segment_header(segment);
    const char *chunks = segment->base + OPSCOPE_SEGMENT_HEADER_BYTES;
    const uint32_t chunk_count = header->chunk_count;
    struct sums sums = {0};
    for (uint32_t i = 0; i < chunk_count && i < OPSCOPE_SEGMENT_CHUNK_LIMIT; i++) {
        const opscope_chunk *chunk =
            (const void *)(chunks + (size_t)i * OPSCOPE_SEGMENT_CHUNK_BYTES);
        const opscope_cell *cells =
            (const void *)((const char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
        const unsigned __int128 before_ps = sums.sampled_ps;
        for (uint32_t k = 0;
             chunk->kind == OPSCOPE_CHUNK_CELLS && k < chunk->used && k < OPSCOPE__CELLS_PER_CHUNK;
             k++) {
            add_cell(&sums, header, &cells[k]);
        }
        if (chunk->table < OPSCOPE_SEGMENT_CHUNK_LIMIT &&
            opscope__recorder.is_of_new[chunk->table]) {
            sums.new_ps += sums.sampled_ps - before_ps;
        }
    }
    return sums;
}

static double limited(double factor)
{
    return factor < LEAST_FACTOR ? LEAST_FACTOR : factor < MOST_FACTOR ? factor : MOST_FACTOR;
}

/* By how much ranges cost more in the program than in a loop, if comparisons say nothing. Without
 * probes, which only PyTorch's bridge has, this is not known. */
static struct opscope__cost_factor usual_factor(const opscope_segment_header *header,
                                                const struct sums *sums)
{
    const double all_ps = (double)(sums->sampled_ps + sums->outer_ps);
    if (!has_loop_probes() || all_ps == 0.0) {
        return (struct opscope__cost_factor){1.0, USUAL_ERROR};
    }
    const double extra_share = (double)sums->extra_ps / all_ps;
    const double second_ps = 1e12;
    const double more_ps = more_ticks() * second_ps / (double)header->ticks_per_second;
    const double factor =
        limited(1.0 + more_ps * (double)sums->all_count / all_ps + FRAMEWORK_MORE * extra_share);
    const double error = USUAL_ERROR + (FRAMEWORK_ERROR - USUAL_ERROR) * extra_share;
    return (struct opscope__cost_factor){factor, error * fmax(1.0, factor)};
}

/* The same of outer ranges: as reported, and for those that nobody reports, the usual one. */
static double factor_of_outer(const opscope_segment_header *header, const struct sums *sums,
                              double usual)
{
    const double count = (double)opscope__load_relaxed(&outer.count);
    /* Otherwise the cells that count every range are those of all operators. */
    const bool are_followed = opscope__recorder.outer_handle != 0;
    if (!are_followed || count == 0.0 || sums->outer_ps == 0) {
        return usual;
    }
    const double second_ps = 1e12;
    const double ps = (double)opscope__load_relaxed(&outer.ticks) / count * second_ps /
                      (double)header->ticks_per_second;
    const double all = (double)sums->outer_count;
    const double share = count < all ? count / all : 1.0;
    return limited(share * ps * all / (double)sums->outer_ps + (1.0 - share) * usual);
}

void opscope__cost_read(const opscope__segment *segment, struct opscope__cost *out)
{
    *out = (struct opscope__cost){.factor = 1.0, .slowdown = 1.0, .outer_factor = 1.0};
    if (segment->base == NULL) {
        return;
    }
    opscope_segment_header *header = opscope__segment_header(segment);
    struct sums sums = sum_cells(segment);
    const struct opscope__cost_factor usual = usual_factor(header, &sums);
    const unsigned __int128 cells_ps = sums.sampled_ps;
    sums.sampled_ps += opscope__load_relaxed(&header->uncounted_cost_ps);
    const struct opscope__cost_factor found =
        opscope__cost_compare_factor(&compare, usual.factor, usual.error);
    const double factor = last_factor = limited(found.factor);
    const struct opscope__cost_factor slowdown = opscope__cost_compare_slowdown(
        &compare, (struct opscope__cost_factor){factor, found.error});
    const double all_ps = (double)(sums.sampled_ps + sums.outer_ps);
    const double of_outer = factor_of_outer(header, &sums, usual.factor);
    /* Outer ranges run all the time, so windows say nothing of their cost. */
    const double of_all =
        all_ps > 0.0
            ? (factor * (double)sums.sampled_ps + of_outer * (double)sums.outer_ps) / all_ps
            : factor;
    const uint64_t factor_ppm = (uint64_t)(of_all * ONE_PPM);
    /* Partner: readers; the value is independent of other memory. */
    opscope__store_relaxed(&header->cost_factor_ppm, factor_ppm);
    /* Partner: threads that record, which may see it slightly late. */
    opscope__store_relaxed(&opscope__recorder.cost_factor,
                           opscope__recorder.sampling.window_ns != 0
                               ? (uint64_t)(factor * (1u << OPSCOPE__COST_FACTOR_LOG2))
                               : 0);
    *out = (struct opscope__cost){.recording_ns = (uint64_t)((sums.sampled_ps + sums.outer_ps) *
                                                             factor_ppm / ONE_PPM / PS_PER_NS),
                                  .outer_ns = (uint64_t)(sums.outer_ps / PS_PER_NS),
                                  .sampled_ns = (uint64_t)(sums.sampled_ps / PS_PER_NS),
                                  .cells_ns = (uint64_t)(cells_ps / PS_PER_NS),
                                  .cells_new_ns = (uint64_t)(sums.new_ps / PS_PER_NS),
                                  .begun_ns = begun_ps / PS_PER_NS,
                                  .begun_new_ns = begun_new_ps / PS_PER_NS,
                                  .counted_ns = (uint64_t)(sums.counted_ps / PS_PER_NS),
                                  .counted_count = sums.counted_count,
                                  .in_no_cell_count = opscope__load_relaxed(&in_no_cell_count),
                                  .few_ns = (uint64_t)(sums.few_ps / PS_PER_NS),
                                  .factor = factor,
                                  .factor_error = found.error,
                                  .slowdown = slowdown.factor,
                                  .slowdown_error = slowdown.error,
                                  .outer_factor = of_outer};
}
