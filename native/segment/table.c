/* segment/table.c -- see segment/table.h: creates tables and lets them grow. */
#include "segment/table.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "segment/names.h"
#include "segment/op_cost.h"

enum { SLOTS_LOG2_AT_FIRST = 8, SLOTS_LOG2_LIMIT = 17 };

opscope_cell opscope__no_room;

static void *chunk_items(opscope_chunk *chunk)
{
    return (char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES;
}

/* ---- slots --------------------------------------------------------------------------------- */

static struct opscope__slot *put(opscope__table *table, struct opscope__slot slot)
{
    const uint64_t mask = UINT64_MAX >> table->shift;
    uint64_t at = opscope__table_slot(table, slot.key);
    while (table->slots[at].key != 0) {
        at = (at + 1) & mask;
    }
    table->slots[at] = slot;
    return &table->slots[at];
}

/* Keeps half of the slots free; false if they cannot grow any more. */
static bool make_room(opscope__table *table)
{
    uint32_t log2 = 64 - table->shift;
    if (table->slot_used_count < (1u << log2) / 2) {
        return true;
    }
    struct opscope__slot *old = table->slots;
    struct opscope__slot *grown =
        log2 < SLOTS_LOG2_LIMIT ? calloc((size_t)2 << log2, sizeof *grown) : NULL;
    if (grown == NULL) {
        return false;
    }
    table->slots = grown;
    table->shift--;
    for (uint32_t i = 0; i < 1u << log2; i++) {
        if (old[i].key != 0) {
            (void)put(table, old[i]);
        }
    }
    free(old);
    return true;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* The chunk for the next cell or line: `current`, or a new one once `current` holds `capacity`. */
static opscope_chunk *chunk_with_room(opscope__segment *segment, opscope_chunk *current,
                                      enum opscope_chunk_kind kind, uint32_t table,
                                      uint32_t capacity, uint32_t stride)
{
    if (current != NULL && current->used < capacity) {
        return current;
    }
    uint32_t first = current != NULL ? current->first + stride : 0;
    return opscope__segment_add_chunk(segment, (uint32_t)kind, table, first);
}

/* With the segment lock held. */
static opscope_cell *add_cell(opscope__table *table, opscope__segment *segment, uint64_t key)
{
    opscope_chunk *chunk = chunk_with_room(segment, table->cells, OPSCOPE_CHUNK_CELLS, table->id,
                                           OPSCOPE__CELLS_PER_CHUNK, OPSCOPE__CELLS_PER_CHUNK);
    if (chunk == NULL) {
        return NULL;
    }
    table->cells = chunk;
    opscope_cell *cell = (opscope_cell *)chunk_items(chunk) + chunk->used;
    cell->key = key;
    /* Partner: the reader of the file; the key is stored before the cell is counted. */
    opscope__store_release(&chunk->used, chunk->used + 1);
    return cell;
}

/* With the segment lock held. */
static opscope_line *add_line(opscope__table *table, opscope__segment *segment, opscope_cell *cell,
                              uint32_t octave)
{
    if (table->lines != NULL && table->lines->used == OPSCOPE__LINES_PER_CHUNK &&
        table->lines->first >> OPSCOPE__LINE_CHUNK_LOG2 == OPSCOPE__LINE_CHUNK_LIMIT - 1) {
        return NULL;
    }
    opscope_chunk *chunk =
        chunk_with_room(segment, table->lines, OPSCOPE_CHUNK_LINES, table->id,
                        OPSCOPE__LINES_PER_CHUNK, 1u << OPSCOPE__LINE_CHUNK_LOG2);
    if (chunk == NULL) {
        return NULL;
    }
    uint32_t number = chunk->first + chunk->used;
    table->lines = chunk;
    table->line_chunks[number >> OPSCOPE__LINE_CHUNK_LOG2] = chunk_items(chunk);
    /* Partner: the reader of the file; it follows a cell's line number only below `used`. */
    opscope__store_release(&chunk->used, chunk->used + 1);
    opscope__store_release(&cell->octave_line[octave], (uint16_t)(number + 1));
    return opscope__table_line(table, cell, octave);
}

/* ---- life ---------------------------------------------------------------------------------- */

opscope__table *opscope__table_create(opscope__segment *segment, uint32_t id)
{
    opscope__table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        return NULL;
    }
    table->id = id;
    table->epoch = segment->epoch;
    table->shift = 64 - SLOTS_LOG2_AT_FIRST;
    table->slots = calloc((size_t)1 << SLOTS_LOG2_AT_FIRST, sizeof *table->slots);
    table->other = table->slots != NULL ? add_cell(table, segment, OPSCOPE__OTHER_OP_ID) : NULL;
    bool complete = table->other != NULL;
    for (uint32_t octave = 0; complete && octave < OPSCOPE_SEGMENT_OCTAVES; octave++) {
        complete = add_line(table, segment, table->other, octave) != NULL;
    }
    if (!complete) {
        opscope__table_destroy(table);
        return NULL;
    }
    (void)put(table, (struct opscope__slot){.key = OPSCOPE__OTHER_OP_ID,
                                            .cell = table->other,
                                            .last_octave = OPSCOPE__NO_OCTAVE});
    table->slot_used_count = 1;
    opscope__table_know_cost(table, opscope__segment_header(segment));
    return table;
}

void opscope__table_know_cost(opscope__table *table, const opscope_segment_header *header)
{
    opscope__table_find(table, OPSCOPE__OTHER_OP_ID)->cost_ticks =
        opscope__table_cost_ticks(header, OPSCOPE__OTHER_OP_ID);
}

void opscope__table_destroy(opscope__table *table)
{
    free(table->slots);
    free(table);
}

struct opscope__slot *opscope__table_add(opscope__table *table, opscope__segment *segment,
                                         uint64_t key)
{
    if (!make_room(table)) {
        return NULL;
    }
    opscope_cell *cell = NULL;
    uint64_t cost_ticks = 0;
    if (!opscope__load_relaxed(&segment->is_full)) {
        opscope__segment_lock();
        if (table->epoch == segment->epoch && opscope__names_add_op(segment, (uint32_t)key)) {
            cell = add_cell(table, segment, key);
            if (cell != NULL) {
                cost_ticks =
                    opscope__table_cost_ticks(opscope__segment_header(segment), (uint32_t)key);
            }
        }
        opscope__segment_unlock();
    }
    cell = cell != NULL ? cell : &opscope__no_room;
    table->slot_used_count++;
    return put(
        table,
        (struct opscope__slot){
            .key = key, .cell = cell, .last_octave = OPSCOPE__NO_OCTAVE, .cost_ticks = cost_ticks});
}

uint64_t opscope__table_cost_ticks(const opscope_segment_header *header, uint32_t op_id)
{
    const uint64_t ps = header->record_cost_ps + opscope__op_cost_extra(op_id);
    return (uint64_t)((unsigned __int128)ps * header->ticks_per_second / 1000000000000u) | 1;
}

opscope_line *opscope__table_add_line(opscope__table *table, opscope__segment *segment,
                                      opscope_cell *cell, uint32_t octave)
{
    if (table->lines->used == OPSCOPE__LINES_PER_CHUNK &&
        opscope__load_relaxed(&segment->is_full)) {
        return NULL;
    }
    opscope__segment_lock();
    opscope_line *line =
        table->epoch == segment->epoch ? add_line(table, segment, cell, octave) : NULL;
    opscope__segment_unlock();
    return line;
}
