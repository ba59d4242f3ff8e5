/* record/exemplar.h -- exemplars: single slow ranges, each with the trace in which it ran.
 *
 * A range is one where its thread's labels have `trace_id` (32 hexadecimal digits) and `span_id`
 * (16), as OpenTelemetry's spans give them, and at most one in a hundred of its cell's ranges took
 * as long, by octaves. Asked for off the hot path alone: where a range falls into another octave
 * than the one before, as a slow one does. Not every slow range is kept, and none has to be.
 */
#ifndef OPSCOPE_RECORD_EXEMPLAR_H
#define OPSCOPE_RECORD_EXEMPLAR_H

#include "record/table.h"

struct opscope_debug_info;

/* Owner of the table only, after the range was added to the cell. */
void opscope__exemplar_consider(opscope__table *table, opscope__segment *segment,
                                const opscope_cell *cell, uint32_t octave, uint64_t ticks,
                                const struct opscope_debug_info *labels);

#endif
