/* record/table.h -- one thread's table of cells in the segment.
 *
 * The cells and the lines of their histograms lie in the segment; what finds them, a hash from key
 * to cell, in private memory. A table outlives its thread: the next new thread takes it over and
 * goes on counting in it, so nothing is folded or copied when a thread ends, and the sum over the
 * tables is right at every moment. Owner of a table: the thread that holds it. Only what asks the
 * segment for more takes the segment lock.
 */
#ifndef OPSCOPE_RECORD_TABLE_H
#define OPSCOPE_RECORD_TABLE_H

#include "record/segment.h"

enum {
    OPSCOPE__CELLS_PER_CHUNK =
        (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) / sizeof(opscope_cell),
    OPSCOPE__LINES_PER_CHUNK =
        (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) / sizeof(opscope_line),
    /* Lines are numbered chunk << 8 | place: a shift finds a line, and no chunk holds 256. */
    OPSCOPE__LINE_CHUNK_LOG2 = 8,
    OPSCOPE__LINE_CHUNK_LIMIT = UINT16_MAX >> OPSCOPE__LINE_CHUNK_LOG2
};

#define OPSCOPE__NO_OCTAVE UINT64_MAX

struct opscope__slot {
    uint64_t key; /* 0: free */
    opscope_cell *cell;
    opscope_line *last_line; /* counted in last; operators seldom leave their octave */
    uint64_t last_octave;    /* of last_line; OPSCOPE__NO_OCTAVE: none yet */
};

typedef struct opscope__table {
    struct opscope__table *next_free; /* segment lock, while nobody holds it */
    uint32_t id;                      /* in the segment */
    uint32_t epoch;                   /* of the segment */
    uint32_t shift;                   /* 64 - log2 of the number of slots */
    struct opscope__slot *slots;
    uint32_t slot_used_count;
    opscope_cell *other;  /* the first cell: what finds no room of its own */
    opscope_chunk *cells; /* the chunks being filled now */
    opscope_chunk *lines;
    opscope_chunk *exemplars; /* NULL: none yet */
    uint64_t exemplar_count;  /* written so far */
    opscope_line *line_chunks[OPSCOPE__LINE_CHUNK_LIMIT];
} opscope__table;

/* With the segment lock held: a table with its `other` cell, complete with all its lines. */
opscope__table *opscope__table_create(opscope__segment *segment, uint32_t id);
void opscope__table_destroy(opscope__table *table);

/* What a key has for a cell when there was no room for one: it has no lines, and is never written.
 */
extern opscope_cell opscope__no_room;

/* Cold: the slot of a key seen for the first time; NULL where there is no room for a slot, and its
 * cell opscope__no_room where there is none for a cell. */
struct opscope__slot *opscope__table_add(opscope__table *table, opscope__segment *segment,
                                         uint64_t key);
/* Cold: the line of an octave seen for the first time; NULL where there is no room. */
opscope_line *opscope__table_add_line(opscope__table *table, opscope__segment *segment,
                                      opscope_cell *cell, uint32_t octave);

static inline uint64_t opscope__table_slot(const opscope__table *table, uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> table->shift;
}

/* NULL where the key is new. */
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
