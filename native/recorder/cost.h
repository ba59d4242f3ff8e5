/* recorder/cost.h -- what recording costs per range, and has cost so far.
 *
 * At its start the recorder measures the cost of a range that is opened and closed with nothing in
 * between (record_cost_ps). A range from a framework costs more: the path from the framework to the
 * recorder comes on top, which for PyTorch costs several times as much. A bridge reports this extra
 * cost of its operators by opscope_recorder_extra_cost. The reported value is a difference, so it
 * is independent of when the recorder measures its own cost.
 */
#ifndef OPSCOPE_RECORDER_COST_H
#define OPSCOPE_RECORDER_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/segment.h"

/* Both figures come from a loop that does nothing else. In a program that leaves little of the
 * recorder in the caches, a range costs several times as much. Therefore one range in some is
 * timed, from a framework's call to its return, both in the loop and in the program. By the
 * difference of the two every range costs more. The framework's own part is not timed; what it
 * costs more is a fixed part of it. Both together, relative to the cost in the loop, scale all
 * costs (cost_factor_ppm). */

/* The clock of probes, in ticks. */
OPSCOPE_API uint64_t opscope__cost_probe_clock(void);
/* Reports a timed range: the ticks of its start and its end together, without the work inside
 * it. */
OPSCOPE_API void opscope__cost_probe(uint64_t ticks);
/* What the recorder's own part of a range costs in a loop, in ticks: the ranges of the loop have an
 * observer that does nothing, so their probes lack it. */
void opscope__cost_probe_lacks(double ticks);
/* Reports what an outer range cost in the program: the ticks of its start and its end together, in
 * two parts or in one. `is_range`: once for each range. */
OPSCOPE_API void opscope__cost_outer(uint64_t ticks, bool is_range);
/* Assigns the following probes to the loop, or to the program again. Only one thread measures at a
 * time; the few probes of other threads meanwhile are mixed in. */
OPSCOPE_API void opscope__cost_probe_loop(bool is_loop);
/* With the segment lock held: whether the next window should compare; another comparison
 * (recorder/cost_compare.h). */
bool opscope__cost_wants_comparison(uint64_t window_number);
struct opscope__cost_comparison;
void opscope__cost_add_comparison(const struct opscope__cost_comparison *window);

/* For bridges: the operator's extra cost arises also while ranges are only counted, whether they
 * are drawn or not. Comparisons then do not see it. */
OPSCOPE_API void opscope__cost_extra_is_counted(uint32_t op_id);
/* For bridges whose framework draws ranges to count them: while ranges of that operator are only
 * counted, one costs this share on average of what it costs when all are recorded. Without a call:
 * nothing. */
OPSCOPE_API void opscope__cost_where_few(uint32_t op_id, double share);

/* For bridges: this one counts that operator's ranges itself (struct opscope__thread), at no cost,
 * while they are only counted. */
OPSCOPE_API void opscope__cost_bridge_counts(uint32_t op_id);

/* Around the code that prepares the calling thread for its first recorded range, whose time is a
 * cost. In CPU time, because a new thread often waits for a processor. */
OPSCOPE_API uint64_t opscope__cost_setup_start(void);
OPSCOPE_API void opscope__cost_setup_end(uint64_t start_ns);

/* The cost of recording one range of that operator, as measured at the start. The operator has a
 * cell, or may get one. */
uint64_t opscope__cost_of_range_ps(const opscope_segment_header *header, uint32_t op_id);

/* Counts a recorded range of that operator that is in no cell, and its cost. */
void opscope__cost_in_no_cell(opscope_segment_header *header, uint32_t op_id);

/* All of a segment so far. */
struct opscope__cost {
    uint64_t recording_ns; /* of all ranges, in this program. A reader computes the same: samples
                              times (record_cost_ps plus their operator's extra), and
                              uncounted_cost_ps, summed, times the cost factor, rounded down */
    uint64_t outer_ns;     /* the part of it from cells that count every range: while operators are
                              sampled, those of outer ranges */
    uint64_t sampled_ns;   /* of the other ranges, as measured in loops */
    uint64_t cells_ns, cells_new_ns; /* the part of it of ranges in cells; and of these, in tables
                                        of new threads, as told when the last window opened */
    uint64_t begun_ns, begun_new_ns; /* the part that preparing threads took, without the factor;
                                        and of it, new threads */
    uint64_t counted_ns, counted_count; /* the part of it that comparisons see, and its ranges,
                                           without those that bridges count */
    uint64_t in_no_cell_count;          /* other ranges, likewise */
    uint64_t few_ns;                    /* what as many ranges cost where they are only counted
                                           (recorder/cost_compare.h) */
    double factor; /* by which sampled ranges cost more in this program, and its standard error */
    double factor_error;
    double outer_factor;             /* the same of outer ranges */
    double slowdown, slowdown_error; /* by which windows contain less work because of sampled
                                        ranges (recorder/cost_compare.h), and its standard error */
};

/* With the segment lock held: also writes the factor into the header, and for the threads that
 * record. */
void opscope__cost_read(const opscope__segment *segment, struct opscope__cost *out);

#endif
