/* recorder/exemplar.c -- see exemplar.h: selects ranges and writes them.
 *
 * A table has at most one chunk of exemplars, made with its first one and used as a ring. The check
 * word lets a reader detect an entry that is half written.
 */
#include "recorder/exemplar.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "opscope/debug_info.h"

enum {
    EXEMPLAR_LIMIT = (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) /
                     sizeof(opscope_exemplar),
    EXEMPLAR_WORDS = sizeof(opscope_exemplar) / sizeof(uint64_t),
    ONE_IN = 100
};

_Static_assert(offsetof(opscope_exemplar, check) == (EXEMPLAR_WORDS - 1) * sizeof(uint64_t),
               "the check is the last word");

/* ---- which ranges --------------------------------------------------------------------------------- */

static bool is_seldom(const opscope__table *table, const opscope_cell *cell, uint32_t octave)
{
    uint64_t as_long = 0;
    for (uint32_t at = octave; at < OPSCOPE_SEGMENT_OCTAVES; at++) {
        const opscope_line *line = opscope__table_line(table, cell, at);
        for (uint32_t i = 0; line != NULL && i < OPSCOPE_SEGMENT_BUCKETS_PER_OCTAVE; i++) {
            as_long += opscope__load_relaxed(&line->weight[i]);
        }
    }
    return as_long <= opscope__load_relaxed(&cell->weight) / ONE_IN;
}

static const char *find(const opscope_debug_info *labels, const char *key)
{
    for (; labels != NULL; labels = labels->parent) {
        if (strcmp(labels->key, key) == 0) {
            return labels->value;
        }
    }
    return NULL;
}

/* False unless the text is exactly that many lower-case hexadecimal digits, not all 0. */
static bool parse(const char *text, uint8_t *out, uint32_t bytes)
{
    uint8_t any = 0;
    for (uint32_t i = 0; i < 2 * bytes; i++) {
        const char digit = text[i];
        uint8_t value;
        if (digit >= '0' && digit <= '9') {
            value = (uint8_t)(digit - '0');
        } else if (digit >= 'a' && digit <= 'f') {
            value = (uint8_t)(digit - 'a' + 10);
        } else {
            return false;
        }
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | value);
        any |= value;
    }
    return text[2 * bytes] == '\0' && any != 0;
}

/* ---- writing one ---------------------------------------------------------------------------------- */

static uint64_t check_of(const uint64_t *words)
{
    uint64_t check = OPSCOPE_EXEMPLAR_SEED;
    for (uint32_t i = 0; i < EXEMPLAR_WORDS - 1; i++) {
        check = (check ^ words[i]) * OPSCOPE_EXEMPLAR_FACTOR;
    }
    return check;
}

static void write_down(opscope__table *table, const opscope_exemplar *exemplar)
{
    uint64_t words[EXEMPLAR_WORDS];
    memcpy(words, exemplar, sizeof words);
    words[EXEMPLAR_WORDS - 1] = check_of(words);
    opscope_chunk *chunk = table->exemplars;
    uint64_t *place = (uint64_t *)(void *)((char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) +
                      table->exemplar_count % EXEMPLAR_LIMIT * EXEMPLAR_WORDS;
    /* Partner: the reader of the file, which uses an entry only if its check is correct. */
    for (uint32_t i = 0; i < EXEMPLAR_WORDS; i++) {
        opscope__store_relaxed(&place[i], words[i]);
    }
    table->exemplar_count++;
    if (table->exemplar_count <= EXEMPLAR_LIMIT) {
        /* Partner: the same. */
        opscope__store_release(&chunk->used, (uint32_t)table->exemplar_count);
    }
}

void opscope__exemplar_consider(opscope__table *table, opscope__segment *segment,
                                const opscope_cell *cell, uint32_t octave, uint64_t ticks,
                                const opscope_debug_info *labels)
{
    const char *trace_id = find(labels, "trace_id");
    const char *span_id = trace_id != NULL ? find(labels, "span_id") : NULL;
    opscope_exemplar exemplar = {.key = cell->key, .ticks = ticks, .end_ticks = opscope__ticks()};
    if (span_id == NULL || !is_seldom(table, cell, octave) ||
        !parse(trace_id, exemplar.trace_id, sizeof exemplar.trace_id) ||
        !parse(span_id, exemplar.span_id, sizeof exemplar.span_id)) {
        return;
    }
    if (table->exemplars == NULL) {
        opscope__segment_lock();
        /* The table's segment may be closed meanwhile; never add to a later one. */
        table->exemplars =
            segment->base != NULL && segment->epoch == table->epoch
                ? opscope__segment_add_chunk(segment, OPSCOPE_CHUNK_EXEMPLARS, table->id, 0)
                : NULL;
        opscope__segment_unlock();
        if (table->exemplars == NULL) {
            return;
        }
    }
    write_down(table, &exemplar);
}
