/* recorder/variance.c -- see recorder/variance.h. The segment lock guards the state here. */
#include "recorder/variance.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/record.h"
#include "segment/table.h"

enum {
    CALLS,
    TOTAL,
    SELF,
    QUANTITIES,
    FIRST_SLOTS = 256,
    PHASE_SHIFT = 32,
    VARIANCES_PER_CHUNK = (OPSCOPE_SEGMENT_CHUNK_BYTES - OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) /
                          sizeof(opscope_variance)
};

/* State of one key. */
struct known {
    uint64_t key;               /* 0: free */
    bool is_outer;              /* every range has weight 1 */
    double now[QUANTITIES];     /* sums over the tables */
    double before[QUANTITIES];  /* when the last window closed */
    double product[QUANTITIES]; /* sum of contribution times work */
    double sum[QUANTITIES];     /* the variances */
    double owed[QUANTITIES];    /* the largest square so far of the estimate for owed work */
    uint64_t window_count;
    opscope_variance *entry; /* NULL: none yet */
};

static struct known *slots;
static size_t slot_count, used_count;
static uint32_t known_epoch; /* of the segment that all this belongs to */
static double square_sum;    /* of the work of windows so far */
static uint64_t window_count;
static opscope_chunk *chunk; /* being filled; NULL: none */
static uint32_t entry_count;

/* ---- outer ranges ------------------------------------------------------------------------------ */

enum { OUTER_KEYS = 64 };

/* By key, in order of arrival; the last entry is for all keys without one. */
static struct {
    uint64_t key;  /* 0: free; claimed once, until the next segment; relaxed */
    uint64_t bits; /* of a double, the sum; relaxed, because it is independent of other memory */
} outer[OUTER_KEYS];

static size_t outer_place(uint64_t key)
{
    size_t at = 0;
    for (; at < OUTER_KEYS - 1; at++) {
        uint64_t found = opscope__load_relaxed(&outer[at].key);
        /* Partner: the same exchange on other threads; one of them gets the entry. */
        if (found == 0 && opscope__replace_relaxed(&outer[at].key, &found, key)) {
            found = key;
        }
        if (found == key) {
            break;
        }
    }
    return at;
}

static double value_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void opscope__variance_add_outer(uint64_t key, double self_ticks_squared)
{
    uint64_t *bits = &outer[outer_place(key)].bits;
    uint64_t before = opscope__load_relaxed(bits), after;
    do {
        const double sum = value_of(before) + self_ticks_squared;
        memcpy(&after, &sum, sizeof after);
    } while (!opscope__replace_relaxed(bits, &before, after));
}

static double outer_variance(uint64_t key)
{
    for (size_t at = 0; at < OUTER_KEYS; at++) {
        if (at == OUTER_KEYS - 1 || opscope__load_relaxed(&outer[at].key) == key) {
            return value_of(opscope__load_relaxed(&outer[at].bits));
        }
    }
    return 0.0;
}

/* ---- keys -------------------------------------------------------------------------------------- */

/* The key's slot, or the free slot for it. */
static struct known *find(struct known *among, size_t count, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (count - 1);
    while (among[at].key != key && among[at].key != 0) {
        at = (at + 1) & (count - 1);
    }
    return &among[at];
}

static bool grow(void)
{
    const size_t count = slot_count != 0 ? 2 * slot_count : FIRST_SLOTS;
    struct known *more = calloc(count, sizeof *more);
    if (more == NULL) {
        return false;
    }
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i].key != 0) {
            *find(more, count, slots[i].key) = slots[i];
        }
    }
    free(slots);
    slots = more;
    slot_count = count;
    return true;
}

/* NULL if memory ran out. */
static struct known *known_of(uint64_t key)
{
    if (2 * used_count >= slot_count && !grow()) {
        return NULL;
    }
    struct known *known = find(slots, slot_count, key);
    if (known->key == 0) {
        *known = (struct known){.key = key, .is_outer = true};
        used_count++;
    }
    return known;
}

static void begin_segment(const opscope__segment *segment)
{
    if (slots != NULL) {
        memset(slots, 0, slot_count * sizeof *slots);
    }
    used_count = 0;
    known_epoch = segment->epoch;
    square_sum = 0.0;
    window_count = 0;
    chunk = NULL;
    entry_count = 0;
    for (size_t at = 0; at < OUTER_KEYS; at++) {
        opscope__store_relaxed(&outer[at].bits, 0);
        opscope__store_relaxed(&outer[at].key, 0);
    }
}

/* ---- what the cells hold ------------------------------------------------------------------------- */

/* The owner of a cell adds without synchronisation; the next call counts an addition that this one
 * misses. */
static void OPSCOPE__UNSYNCHRONIZED add_cell(const volatile opscope_cell *cell)
{
    const uint64_t key = cell->key;
    const uint64_t phase_key = key & (uint64_t)0xff << PHASE_SHIFT;
    const uint64_t samples = cell->sample_count, weight = cell->weight;
    if ((uint32_t)key <= OPSCOPE__OTHER_OP_ID || samples == 0) {
        return;
    }
    const double whole = (double)cell->whole_ticks, total = (double)cell->total_ticks;
    const double self = (double)cell->self_ticks;
    const double values[QUANTITIES] = {
        (double)weight / (double)((uint64_t)1 << OPSCOPE_SEGMENT_WEIGHT_LOG2), total,
        whole > 0.0 ? total * self / whole : 0.0};
    const bool is_outer = weight == samples << OPSCOPE_SEGMENT_WEIGHT_LOG2;
    /* Phase 0 alone would give the key 0, which marks a free slot; the id of "other" avoids
     * that. */
    struct known *phase = !is_outer ? known_of(phase_key | (uint64_t)OPSCOPE__OTHER_OP_ID) : NULL;
    struct known *known =
        known_of(key); /* last, because the previous call may have moved the slots */
    phase =
        phase != NULL ? find(slots, slot_count, phase_key | (uint64_t)OPSCOPE__OTHER_OP_ID) : NULL;
    for (int i = 0; known != NULL && i < QUANTITIES; i++) {
        known->now[i] += values[i];
        if (phase != NULL) {
            phase->now[i] += values[i];
        }
    }
    if (known != NULL && !is_outer) {
        known->is_outer = false;
    }
    if (phase != NULL) {
        phase->is_outer = false;
    }
}

static void add_cells(const opscope__segment *segment)
{
    const char *chunks = segment->base + OPSCOPE_SEGMENT_HEADER_BYTES;
    const uint32_t chunk_count = opscope__segment_header(segment)->chunk_count;
    for (uint32_t i = 0; i < chunk_count && i < OPSCOPE_SEGMENT_CHUNK_LIMIT; i++) {
        const opscope_chunk *found =
            (const void *)(chunks + (size_t)i * OPSCOPE_SEGMENT_CHUNK_BYTES);
        const opscope_cell *cells =
            (const void *)((const char *)found + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES);
        for (uint32_t k = 0;
             found->kind == OPSCOPE_CHUNK_CELLS && k < found->used && k < OPSCOPE__CELLS_PER_CHUNK;
             k++) {
            add_cell(&cells[k]);
        }
    }
}

/* ---- deviations ----------------------------------------------------------------------------------- */

static void deviate(struct known *known, double work, double owed)
{
    const double times = window_count == 2 ? 2.0 : 1.0;
    for (int i = 0; i < QUANTITIES; i++) {
        const double part = known->now[i] - known->before[i];
        if (square_sum > 0.0) {
            const double off = part - known->product[i] / square_sum * work;
            known->sum[i] += times * off * off / (1.0 + work * work / square_sum);
        }
        known->product[i] += part * work;
        const double squares = square_sum + work * work;
        const double missing = squares > 0.0 ? known->product[i] / squares * owed : 0.0;
        known->owed[i] = fmax(known->owed[i], missing * missing);
        known->window_count += i == CALLS && part > 0.0;
        known->before[i] = known->now[i];
        known->now[i] = 0.0;
    }
}

static opscope_variance *add_entry(opscope__segment *segment, uint64_t key)
{
    if (chunk == NULL || chunk->used == VARIANCES_PER_CHUNK) {
        opscope_chunk *added =
            opscope__segment_add_chunk(segment, OPSCOPE_CHUNK_VARIANCES, 0, entry_count);
        if (added == NULL) {
            return NULL;
        }
        chunk = added;
    }
    opscope_variance *entry =
        (opscope_variance *)(void *)((char *)chunk + OPSCOPE_SEGMENT_CHUNK_HEADER_BYTES) +
        chunk->used;
    entry->key = (uint32_t)key == OPSCOPE__OTHER_OP_ID ? key - OPSCOPE__OTHER_OP_ID : key;
    entry_count++;
    /* Partner: the reader's load of `used`. */
    opscope__store_release(&chunk->used, chunk->used + 1);
    return entry;
}

static void show(double *field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    /* Partner: the reader of the file; each value is independent of other memory. */
    opscope__store_relaxed((uint64_t *)(void *)field, bits);
}

static void publish(opscope__segment *segment, struct known *known)
{
    if (known->is_outer) {
        known->sum[CALLS] = known->sum[TOTAL] = 0.0;
        known->sum[SELF] = outer_variance(known->key);
        memset(known->owed, 0, sizeof known->owed);
    }
    if (known->entry == NULL && known->window_count > 0) {
        known->entry = add_entry(segment, known->key);
    }
    if (known->entry != NULL) {
        opscope__store_relaxed(&known->entry->window_count, known->window_count);
        show(&known->entry->calls, known->sum[CALLS] + known->owed[CALLS]);
        show(&known->entry->total_ticks, known->sum[TOTAL] + known->owed[TOTAL]);
        show(&known->entry->self_ticks, known->sum[SELF] + known->owed[SELF]);
    }
}

void opscope__variance_window(opscope__segment *segment, double work, double owed)
{
    if (segment->base == NULL) {
        return;
    }
    if (segment->epoch != known_epoch) {
        begin_segment(segment);
    }
    window_count++;
    add_cells(segment);
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i].key != 0) {
            deviate(&slots[i], work, owed);
        }
    }
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i].key != 0) {
            publish(segment, &slots[i]);
        }
    }
    square_sum += work * work;
}
