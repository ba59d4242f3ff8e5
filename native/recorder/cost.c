/* recorder/cost.c -- see recorder/cost.h. */
#include "recorder/cost.h"

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/recorder.h"
#include "recorder/state.h"
#include "segment/op_cost.h"
#include "segment/table.h"

void opscope_recorder_extra_cost(uint32_t op_id, uint64_t extra_ps)
{
    opscope__op_cost_set(op_id, extra_ps);
}

uint64_t opscope__cost_of_range_ps(const opscope_segment_header *header, uint32_t op_id)
{
    return header->record_cost_ps + opscope__op_cost_extra(op_id);
}

/* ---- in the loop and in the program --------------------------------------------------------------- */

/* A probe above the limit was interrupted. */
enum { PROBE_LIMIT_TICKS = 60000, PRIOR_PROBES = 32, ONE_PPM = 1000000 };
static const double LEAST_FACTOR = 0.5, MOST_FACTOR = 20.0;

/* Sums of the probes in the program and in the loop; add_relaxed by any thread. */
static struct {
    uint64_t count, ticks;
} probes[2];
static uint32_t is_in_loop; /* relaxed */

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
    /* The lock keeps the segment open meanwhile. */
    opscope__segment_lock();
    if (opscope__recorder.segment.base != NULL) {
        opscope__add_relaxed(
            &opscope__segment_header(&opscope__recorder.segment)->uncounted_cost_ps, ns * 1000);
    }
    opscope__segment_unlock();
}

void opscope__cost_probe(uint64_t ticks)
{
    if (ticks < PROBE_LIMIT_TICKS) {
        const uint32_t which = opscope__load_relaxed(&is_in_loop);
        opscope__add_relaxed(&probes[which].ticks, ticks);
        opscope__add_relaxed(&probes[which].count, 1);
    }
}

void opscope__cost_probe_loop(bool is_loop)
{
    opscope__store_relaxed(&is_in_loop, is_loop);
}

void opscope__cost_update_factor(const opscope__segment *segment)
{
    const double loop_count = (double)opscope__load_relaxed(&probes[1].count);
    const double count = (double)opscope__load_relaxed(&probes[0].count);
    if (segment->base == NULL || loop_count == 0.0 || count == 0.0) {
        return;
    }
    const double in_loop = (double)opscope__load_relaxed(&probes[1].ticks) / loop_count;
    const double sum = (double)opscope__load_relaxed(&probes[0].ticks) + PRIOR_PROBES * in_loop;
    double factor = sum / (count + PRIOR_PROBES) / in_loop;
    factor = factor < LEAST_FACTOR ? LEAST_FACTOR : factor < MOST_FACTOR ? factor : MOST_FACTOR;
    /* Partner: readers; the value is independent of other memory. */
    opscope__store_relaxed(&opscope__segment_header(segment)->cost_factor_ppm,
                           (uint64_t)(factor * ONE_PPM));
}

/* The owner of a cell adds without synchronisation; an aligned load returns the old or the new
 * value. */
static uint64_t OPSCOPE__UNSYNCHRONIZED samples_of(const opscope_cell *cell, bool of_outer)
{
    const volatile opscope_cell *shared = cell;
    const uint64_t samples = shared->sample_count;
    return !of_outer || shared->weight == samples << OPSCOPE_SEGMENT_WEIGHT_LOG2 ? samples : 0;
}

/* The cost of all cells, or only those of outer ranges, in picoseconds as measured at the start. */
static unsigned __int128 cost_of_cells_ps(const opscope__segment *segment, bool of_outer)
{
    const opscope_segment_header *header = opscope__segment_header(segment);
    const char *chunks = segment->base + OPSCOPE_SEGMENT_HEADER_BYTES;
    const uint32_t chunk_count = header->chunk_count;
    unsigned __int128 cost_ps = 0;
    uint64_t count = 0;
    for (uint32_t i = 0; i < chunk_count && i < OPSCOPE_SEGMENT_CHUNK_LIMIT; i++) {
        const opscope_chunk *chunk =
            (const void *)(chunks + (size_t)i * OPSCOPE_SEGMENT_CHUNK_BYTES);
        const opscope_cell *cells =
            (const void *)((const char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
        for (uint32_t k = 0;
             chunk->kind == OPSCOPE_CHUNK_CELLS && k < chunk->used && k < OPSCOPE__CELLS_PER_CHUNK;
             k++) {
            const uint64_t samples = samples_of(&cells[k], of_outer);
            count += samples;
            cost_ps += (unsigned __int128)samples * opscope__op_cost_extra((uint32_t)cells[k].key);
        }
    }
    return cost_ps + (unsigned __int128)count * header->record_cost_ps;
}

/* The same cost in this program. */
static uint64_t in_program_ns(const opscope_segment_header *header, unsigned __int128 cost_ps)
{
    const uint64_t factor_ppm = opscope__load_relaxed(&header->cost_factor_ppm);
    return (uint64_t)(cost_ps * (factor_ppm != 0 ? factor_ppm : ONE_PPM) / ONE_PPM / 1000);
}

uint64_t opscope__cost_of_samples_ns(const opscope__segment *segment)
{
    if (segment->base == NULL) {
        return 0;
    }
    const opscope_segment_header *header = opscope__segment_header(segment);
    return in_program_ns(header, cost_of_cells_ps(segment, false) +
                                     opscope__load_relaxed(&header->uncounted_cost_ps));
}

uint64_t opscope__cost_of_outer_ns(const opscope__segment *segment)
{
    return segment->base != NULL
               ? in_program_ns(opscope__segment_header(segment), cost_of_cells_ps(segment, true))
               : 0;
}
