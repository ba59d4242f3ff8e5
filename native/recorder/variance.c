/* recorder/variance.c -- see recorder/variance.h. The segment lock guards the state here. */
#include "recorder/variance.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/record.h"
#include "recorder/interruption.h"
#include "recorder/outer_variance.h"
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

/* A prediction from windows with little work is worthless for one with this many times as much. */
static const double RELIABLE = 4.0;

/* A 95 % interval from n deviations is wider than one from many, by Student's distribution: the
 * square of its width by this, divided by n - 1. */
static const double FEW = 4.0;
/* From this many windows on, their spread tells the error. */
static const double ONE_WINDOW = 2.0;

/* The mean square of what is owed is over this many windows, earlier ones with less weight. By
 * simulation of crowded hosts and of bursts, 95 % intervals then hold in 95 to 99 % of programs of
 * 15 s and more; with the largest square so far they hold in 99 to 100 %, and are twice as wide. */
static const double OWED_WINDOWS = 8.0;
/* Half of a 95 % interval in standard errors. */
static const double SURE_ERRORS = 1.96;

/* State of one key. */
struct known {
    uint64_t key;                     /* 0: free */
    bool is_outer;                    /* every range has weight 1 */
    double now[QUANTITIES];           /* sums over the tables */
    double before[QUANTITIES];        /* when the last window closed */
    double squares;                   /* sum over the windows of their calls, squared */
    double sum[QUANTITIES];           /* of the squared deviations */
    double added[QUANTITIES];         /* to them in this window, for its deviations */
    double owed[QUANTITIES];          /* of the estimate for owed work */
    double owed_square[QUANTITIES];   /* the mean of its square, over the last windows */
    double owed_count;                /* of those windows */
    double measured, measured_before; /* self time alone, without that of ranges cut by windows */
    double growth, excess;            /* of the self time in this window */
    double counted;                   /* stops in this window, squared */
    opscope__interrupted interrupted;
    double stops_inside; /* of an outer range: the share of the ranges inside it, squared */
    uint64_t window_count;
    opscope_variance *entry; /* NULL: none yet */
};

static struct known *slots;
static size_t slot_count, used_count;
static uint32_t known_epoch; /* of the segment that all this belongs to */
static double work_sum;      /* of windows so far */
static double square_sum;    /* the same, of their squares */
static double all_shared;    /* stops, squared, of all operators so far */
static opscope_chunk *chunk; /* being filled; NULL: none */
static uint32_t entry_count;

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
    work_sum = square_sum = 0.0;
    all_shared = 0.0;
    chunk = NULL;
    entry_count = 0;
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
        known->measured += self;
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

/* The squared deviation of a contribution from what the windows before predict. */
static double squared_deviation(const struct known *known, int quantity, double work)
{
    const double part = known->now[quantity] - known->before[quantity];
    const double off = part - known->before[quantity] / work_sum * work;
    const double reliable = fmin(1.0, RELIABLE * work_sum / fmax(work, 1.0));
    return off * off * reliable * reliable;
}

static void deviate(struct known *known, double work, double missing_work)
{
    known->owed_count = fmin(known->owed_count + 1.0, OWED_WINDOWS);
    for (int i = 0; i < QUANTITIES; i++) {
        known->added[i] = work_sum > 0.0 ? squared_deviation(known, i, work) : 0.0;
        known->sum[i] += known->added[i];
        const double all_work = work_sum + work;
        const double missing = all_work > 0.0 ? known->now[i] / all_work * missing_work : 0.0;
        known->owed[i] = missing;
        known->owed_square[i] += (missing * missing - known->owed_square[i]) / known->owed_count;
        const double part = known->now[i] - known->before[i];
        known->squares += i == CALLS ? part * part : 0.0;
        known->window_count += i == CALLS && part > 0.0;
        known->growth = part; /* the last one: of the self time */
        known->before[i] = known->now[i];
        known->now[i] = 0.0;
    }
}

/* ---- stops ---------------------------------------------------------------------------------------- */

static bool is_phase(const struct known *known)
{
    return (uint32_t)known->key == OPSCOPE__OTHER_OP_ID;
}

static bool is_sampled_op(const struct known *known)
{
    return known->key != 0 && !known->is_outer && !is_phase(known);
}

/* The self time that it would have without stops. */
static double unstopped(const struct known *known)
{
    return fmax(0.0, known->before[SELF] - known->interrupted.stopped);
}

static double share_of(const struct known *known, double all_unstopped)
{
    return all_unstopped > 0.0 ? fmin(1.0, unstopped(known) / all_unstopped) : 0.0;
}

/* How much more self time this window has of it than the windows before, without their stops, had
 * for as much work. */
static double excess_of(const struct known *known, double work)
{
    const double earlier = fmax(0.0, unstopped(known) - known->growth);
    return fmax(0.0, known->growth - (work_sum > 0.0 ? earlier / work_sum * work : 0.0));
}

static struct known *phase_of(const struct known *known)
{
    const uint64_t phase = known->key & (uint64_t)0xff << PHASE_SHIFT;
    return find(slots, slot_count, phase | (uint64_t)OPSCOPE__OTHER_OP_ID);
}

/* Finds the stops of this window and adds each operator's share of them to its variance.
 * `busy_ticks`: the CPU time of the threads from the window's beginning until it closed, times its
 * weight. The self time of an outer range is what the estimate for the ranges inside leaves of it,
 * so it has the error of the share of those that are not exact. */
static void share_stops(double work, double busy_ticks)
{
    double waited = -busy_ticks, squares = 0.0, all_self = 0.0, all_unstopped = 0.0, all = 0.0;
    for (size_t i = 0; i < slot_count; i++) {
        struct known *known = &slots[i];
        if (is_sampled_op(known)) {
            waited += known->measured - known->measured_before;
            known->excess = excess_of(known, work);
            squares += known->excess * known->excess;
            all_self += known->before[SELF];
            all_unstopped += unstopped(known);
        }
        known->measured_before = known->measured;
        known->measured = known->counted = 0.0;
    }
    for (size_t i = 0; i < slot_count && waited > 0.0; i++) {
        struct known *known = &slots[i];
        if (is_sampled_op(known)) {
            const double stopped = opscope__interruption_part(known->excess, waited, squares);
            known->counted = opscope__interruption_count(
                &known->interrupted, share_of(known, all_unstopped), all_shared, stopped);
            struct known *phase = phase_of(known);
            phase->counted += known->counted;
            phase->interrupted.stopped += stopped;
            all += known->counted;
        }
    }
    all_shared += all;
    for (size_t i = 0; i < slot_count && all > 0.0; i++) {
        struct known *known = &slots[i];
        if (known->key != 0 && known->is_outer) {
            const double exact = (double)opscope__outer_inside(known->key).exact_ticks;
            const double inside = fmax(0.0, known->before[TOTAL] - known->before[SELF] - exact);
            known->stops_inside += fmin(1.0, inside / all_self) * all;
        } else if (is_sampled_op(known) || is_phase(known)) {
            const double share = share_of(known, all_unstopped);
            known->sum[SELF] +=
                opscope__interruption_variance(&known->interrupted, share, known->counted, all);
            /* A stop anywhere inside a range is in its total time. */
            const double inside = fmin(1.0, known->before[TOTAL] / all_self);
            known->sum[TOTAL] += fmax(0.0, inside * all - known->added[TOTAL]);
        }
    }
}

/* ---- the file ------------------------------------------------------------------------------------- */

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

/* The number of contributions alike that have this sum and this sum of squares. Small ones hardly
 * count. */
static double count_alike(double sum, double squares)
{
    return squares > 0.0 ? sum * sum / squares : 1.0;
}

/* The number of windows alike that the estimate rests on: of all, or of those that met the
 * operator. */
static double rests_on(const struct known *known)
{
    const double met = count_alike(known->before[CALLS], known->squares);
    return fmin(met, count_alike(work_sum, square_sum));
}

/* From few windows, their spread is uncertain itself. One window has none, and an error as large as
 * the estimate. */
static double for_few(const struct known *known, int quantity)
{
    if (known->is_outer) {
        return 0.0;
    }
    const double windows = rests_on(known);
    const double estimate = known->before[quantity], sum = known->sum[quantity];
    const double single = fmin(1.0, fmax(0.0, ONE_WINDOW - windows));
    return fmax(sum * FEW / fmax(0.5, windows - 1.0), single * estimate * estimate - sum);
}

static double for_owed(const struct known *known, int quantity)
{
    const double now = known->owed[quantity] / SURE_ERRORS;
    return fmax(known->owed_square[quantity], now * now);
}

/* The part of the variance that may fall. */
static double passing(const struct known *known, int quantity)
{
    return for_few(known, quantity) + for_owed(known, quantity);
}

static double variance(const struct known *known, int quantity)
{
    return known->sum[quantity] + passing(known, quantity);
}

static void publish(opscope__segment *segment, struct known *known)
{
    if (known->is_outer) {
        known->sum[CALLS] = known->sum[TOTAL] = 0.0;
        known->sum[SELF] = opscope__outer_inside(known->key).variance + known->stops_inside;
        memset(known->owed, 0, sizeof known->owed);
        memset(known->owed_square, 0, sizeof known->owed_square);
    }
    if (known->entry == NULL && known->window_count > 0) {
        known->entry = add_entry(segment, known->key);
    }
    if (known->entry != NULL) {
        opscope__store_relaxed(&known->entry->window_count, known->window_count);
        show(&known->entry->calls, variance(known, CALLS));
        show(&known->entry->total_ticks, variance(known, TOTAL));
        show(&known->entry->self_ticks, variance(known, SELF));
        show(&known->entry->calls_squared, known->squares);
        show(&known->entry->calls_owed, passing(known, CALLS));
        show(&known->entry->self_owed, passing(known, SELF));
    }
}

void opscope__variance_window(opscope__segment *segment,
                              const struct opscope__variance_window *window)
{
    const double work = window->work;
    if (segment->base == NULL) {
        return;
    }
    if (segment->epoch != known_epoch) {
        begin_segment(segment);
    }
    add_cells(segment);
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i].key != 0) {
            deviate(&slots[i], work, window->missing);
        }
    }
    share_stops(work,
                window->busy * (double)opscope__segment_header(segment)->ticks_per_second * 1e-9);
    work_sum += work;
    square_sum += work * work;
    for (size_t i = 0; i < slot_count; i++) {
        if (slots[i].key != 0) {
            publish(segment, &slots[i]);
        }
    }
}
