/* segment/table.h -- one thread's table of cells in the segment.
 *
 * The cells and the lines of their histograms lie in the segment; the hash table from key to cell
 * lies in private memory. A table outlives its thread: the next new thread takes it over and
 * continues counting in it. Nothing is merged or copied when a thread ends, and the sum over the
 * tables is correct at every moment. Owner of a table: the thread that holds it. Only functions
 * that allocate from the segment take the segment lock.
 */
#ifndef OPSCOPE_SEGMENT_TABLE_H
#define OPSCOPE_SEGMENT_TABLE_H

#include "base/hot.h"
#include "segment/segment.h"

enum {
    OPSCOPE__CELLS_PER_CHUNK =
        (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) / sizeof(opscope_cell),
    OPSCOPE__LINES_PER_CHUNK =
        (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) / sizeof(opscope_line),
    /* Lines are numbered chunk << 8 | index: a shift finds a line, and no chunk holds 256 lines. */
    OPSCOPE__LINE_CHUNK_LOG2 = 8,
    OPSCOPE__LINE_CHUNK_LIMIT = UINT16_MAX >> OPSCOPE__LINE_CHUNK_LOG2
};

#define OPSCOPE__NO_OCTAVE UINT64_MAX

struct opscope__slot {
    uint64_t key; /* 0: free */
    opscope_cell *cell;
    opscope_line *last_line;  /* the last line counted in; an operator rarely leaves its octave */
    uint64_t last_octave;     /* of last_line; OPSCOPE__NO_OCTAVE: none yet */
    uint64_t owed_self_ticks; /* of an outer range's cell: see count_outer in recorder/recorder.c */
    uint64_t cost_ticks; /* of recording a range, as measured at the start; 0: no room for a cell */
};

typedef struct opscope__table {
    struct opscope__table *next_free; /* segment lock, while no thread holds the table */
    uint32_t id;                      /* in the segment */
    uint32_t epoch;                   /* of the segment */
    uint32_t shift;                   /* 64 - log2 of the number of slots */
    struct opscope__slot *slots;
    uint32_t slot_used_count;
    opscope_cell *other;  /* the first cell, for ranges without room of their own */
    opscope_chunk *cells; /* the chunks being filled */
    opscope_chunk *lines;
    opscope_chunk *exemplars; /* NULL: none yet */
    uint64_t exemplar_count;  /* written so far */
    opscope_line *line_chunks[OPSCOPE__LINE_CHUNK_LIMIT];
} opscope__table;

/* With the segment lock held: makes a table with its `other` cell, which has all its lines. */
opscope__table *opscope__table_create(opscope__segment *segment, uint32_t id);
void opscope__table_destroy(opscope__table *table);

/* What recording a range of that operator costs, as measured at the start; at least 1. */
uint64_t opscope__table_cost_ticks(const opscope_segment_header *header, uint32_t op_id);

/* The table has only its `other` cell, and the cost of recording is known now. */
void opscope__table_know_cost(opscope__table *table, const opscope_segment_header *header);

/* The cell of a key that found no room for one: it has no lines and is never written. */
extern OPSCOPE__INTERNAL opscope_cell opscope__no_room;

/* Cold: adds the slot of a new key. NULL if there is no room for a slot; if there is no room for a
 * cell, the slot's cell is opscope__no_room. */
struct opscope__slot *opscope__table_add(opscope__table *table, opscope__segment *segment,
                                         uint64_t key);
/* Cold: adds the line of a new octave; NULL if there is no room. */
opscope_line *opscope__table_add_line(opscope__table *table, opscope__segment *segment,
                                      opscope_cell *cell, uint32_t octave);

static inline uint64_t opscope__table_slot(const opscope__table *table, uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> table->shift;
}

/* NULL if the key is new. */
static inline struct opscope__slot *opscope__table_find(const opscope__table *table, uint64_t key)
{
    const uint64_t mask = UINT64_MAX >> table->shift;
    uint64_t at = opscope__table_slot(table, key);
    while (__builtin_expect(table->slots[at].key != key, 0)) {
        if (table->slots[at].key == 0) {
            return NULL;
        }
        at = (at + 1) & mask;
    }
    return &table->slots[at];
}

static inline opscope_line *opscope__table_line(const opscope__table *table,
                                                const opscope_cell *cell, uint32_t octave)
{
    uint32_t number = cell->octave_line[octave];
    if (__builtin_expect(number == 0, 0)) {
        return NULL;
    }
    number--;
    return &table->line_chunks[number >> OPSCOPE__LINE_CHUNK_LOG2]
                              [number & ((1 << OPSCOPE__LINE_CHUNK_LOG2) - 1)];
}

#endif
