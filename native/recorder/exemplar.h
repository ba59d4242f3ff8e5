/* recorder/exemplar.h -- exemplars: single slow ranges, each with the trace that contains it.
 *
 * A range qualifies if the labels of its thread (of an async range: those at its start) have
 * `trace_id` (32 hexadecimal digits) and `span_id` (16), as OpenTelemetry's spans set them, and if
 * at most one in a hundred of its cell's ranges took as long, by octaves. The check runs only off
 * the hot path: when a range falls into another octave than the one before, as slow ones do.
 * Exemplars are a selection; not every slow range becomes one.
 */
#ifndef OPSCOPE_RECORDER_EXEMPLAR_H
#define OPSCOPE_RECORDER_EXEMPLAR_H

#include "segment/table.h"

struct opscope_debug_info;

/* Call it as the owner of the table, after adding the range to the cell. */
void opscope__exemplar_consider(opscope__table *table, opscope__segment *segment,
                                const opscope_cell *cell, uint32_t octave, uint64_t ticks,
                                const struct opscope_debug_info *labels);

#endif
