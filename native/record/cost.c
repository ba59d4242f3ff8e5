/* record/cost.c -- see record/cost.h. */
#include "record/cost.h"

#include "base/atomics.h"
#include "opscope/recorder.h"
#include "record/table.h"

/* NONE: settled without an extra cost. `Other` has ranges of all kinds and no entry in the
 * dictionary. */
enum { OP_ID_LIMIT = 65536, OTHER_OP_ID = 1, UNSETTLED = 0 };
static const uint32_t NONE = UINT32_MAX;

/* By operator; relaxed, as each is a fact by itself: from UNSETTLED to what it then stays. */
static uint32_t extras[OP_ID_LIMIT + 1];

static uint32_t settle(uint32_t op_id, uint32_t extra)
{
    uint32_t found = UNSETTLED;
    /* Partner: the same on other threads, of which the first decides. */
    return __atomic_compare_exchange_n(&extras[op_id], &found, extra, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED)
               ? extra
               : found;
}

void opscope_recorder_extra_cost(uint32_t op_id, uint64_t extra_ps)
{
    if (op_id > OTHER_OP_ID && op_id <= OP_ID_LIMIT && extra_ps != 0 &&
        opscope__load_relaxed(&extras[op_id]) == UNSETTLED) {
        (void)settle(
            op_id, extra_ps < OPSCOPE__COST_LIMIT_PS ? (uint32_t)extra_ps : OPSCOPE__COST_LIMIT_PS);
    }
}

uint32_t opscope__cost_settle(uint32_t op_id)
{
    const uint32_t extra = op_id <= OP_ID_LIMIT ? settle(op_id, NONE) : NONE;
    return extra != NONE ? extra : 0;
}

/* Of an operator with a cell, and so settled. */
static uint32_t extra_of(uint32_t op_id)
{
    const uint32_t extra = op_id <= OP_ID_LIMIT ? opscope__load_relaxed(&extras[op_id]) : NONE;
    return extra != NONE ? extra : 0;
}

/* The owner of a cell adds without a thought for other threads; an aligned load has the old or the
 * new value. */
static uint64_t OPSCOPE__UNSYNCHRONIZED samples_of(const opscope_cell *cell)
{
    return *(const volatile uint64_t *)&cell->sample_count;
}

uint64_t opscope__cost_of_samples_ns(const opscope__segment *segment)
{
    if (segment->base == NULL) {
        return 0;
    }
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
            const uint64_t samples = samples_of(&cells[k]);
            count += samples;
            cost_ps += (unsigned __int128)samples * extra_of((uint32_t)cells[k].key);
        }
    }
    cost_ps += (unsigned __int128)count * header->record_cost_ps;
    return (uint64_t)(cost_ps / 1000);
}
