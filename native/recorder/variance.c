/* recorder/variance.c -- see recorder/variance.h. The segment lock guards the state here. */
#include "recorder/variance.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/record.h"
#include "recorder/outer_variance.h"
#include "recorder/variance_keys.h"
#include "segment/entries.h"

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

static opscope__known_keys keys;
static uint32_t known_epoch; /* of the segment that all this belongs to */
static double work_sum;      /* of windows so far */
static double square_sum;    /* the same, of their squares */
static double all_shared;    /* stops, squared, of all operators so far */
static opscope__entries variances, off_cpu;

static void begin_segment(const opscope__segment *segment)
{
    opscope__known_forget(&keys);
    known_epoch = segment->epoch;
    work_sum = square_sum = 0.0;
    all_shared = 0.0;
    variances = off_cpu = (opscope__entries){0};
}

/* ---- what the cells hold ------------------------------------------------------------------------- */

/* The owner of a cell adds without synchronisation; the next call counts an addition that this one
 * misses. */
static void OPSCOPE__UNSYNCHRONIZED add_cell(const volatile opscope_cell *cell)
{
    const uint64_t key = cell->key;
    const uint64_t phase_key = opscope__known_phase_key(key);
    const uint64_t samples = cell->sample_count, weight = cell->weight;
    if ((uint32_t)key <= OPSCOPE__OTHER_OP_ID || samples == 0) {
        return;
    }
    const double whole = (double)cell->whole_ticks, total = (double)cell->total_ticks;
    const double self = (double)cell->self_ticks;
    const double values[OPSCOPE__QUANTITIES] = {
        (double)weight / (double)((uint64_t)1 << OPSCOPE_SEGMENT_WEIGHT_LOG2), total,
        whole > 0.0 ? total * self / whole : 0.0, whole > 0.0 ? total * self / whole : 0.0};
    const bool is_outer = weight == samples << OPSCOPE_SEGMENT_WEIGHT_LOG2;
    struct opscope__known *phase = !is_outer ? opscope__known_of(&keys, phase_key) : NULL;
    /* Last, because the previous call may have moved the slots. */
    struct opscope__known *known = opscope__known_of(&keys, key);
    phase = phase != NULL ? opscope__known_find(&keys, phase_key) : NULL;
    for (int i = 0; known != NULL && i < OPSCOPE__QUANTITIES; i++) {
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

/* Takes the main thread's off-CPU time off, and shows it. */
static void add_off_cpu(const opscope__segment *segment)
{
    struct opscope__off_cpu_of of;
    for (size_t i = 0; keys.slot_count != 0 && opscope__off_cpu_read(segment->epoch, i, &of); i++) {
        struct opscope__known *known = opscope__known_find(&keys, of.key);
        if (known->key != 0) {
            known->off_cpu_of = of;
        }
        if (known->key != 0 && !known->is_outer) {
            known->now[OPSCOPE__ON_CPU] =
                fmax(0.0, known->now[OPSCOPE__ON_CPU] - (double)of.self_ticks);
            opscope__known_find(&keys, opscope__known_phase_key(known->key))
                ->now[OPSCOPE__ON_CPU] -= (double)of.self_ticks;
        }
    }
}

/* ---- deviations ----------------------------------------------------------------------------------- */

/* The squared deviation of a contribution from what the windows before predict. */
static double squared_deviation(const struct opscope__known *known, int quantity, double work)
{
    const double part = known->now[quantity] - known->before[quantity];
    const double off = part - known->before[quantity] / work_sum * work;
    const double reliable = fmin(1.0, RELIABLE * work_sum / fmax(work, 1.0));
    return off * off * reliable * reliable;
}

static void deviate(struct opscope__known *known, double work, double missing_work)
{
    known->owed_count = fmin(known->owed_count + 1.0, OWED_WINDOWS);
    for (int i = 0; i < OPSCOPE__QUANTITIES; i++) {
        known->added[i] = work_sum > 0.0 ? squared_deviation(known, i, work) : 0.0;
        known->sum[i] += known->added[i];
        const double all_work = work_sum + work;
        const double missing = all_work > 0.0 ? known->now[i] / all_work * missing_work : 0.0;
        known->owed[i] = missing;
        known->owed_square[i] += (missing * missing - known->owed_square[i]) / known->owed_count;
        const double part = known->now[i] - known->before[i];
        known->squares += i == OPSCOPE__CALLS ? part * part : 0.0;
        known->window_count += i == OPSCOPE__CALLS && part > 0.0;
        known->growth = part; /* the last one: of the self time */
        known->before[i] = known->now[i];
        known->now[i] = 0.0;
    }
}

/* ---- stops ---------------------------------------------------------------------------------------- */

static bool is_sampled_op(const struct opscope__known *known)
{
    return known->key != 0 && !known->is_outer && !opscope__known_is_phase(known);
}

/* The self time that it would have without stops. */
static double unstopped(const struct opscope__known *known)
{
    return fmax(0.0, known->before[OPSCOPE__SELF] - known->interrupted.stopped);
}

static double share_of(const struct opscope__known *known, double all_unstopped)
{
    return all_unstopped > 0.0 ? fmin(1.0, unstopped(known) / all_unstopped) : 0.0;
}

/* How much more self time this window has of it than the windows before, without their stops, had
 * for as much work. */
static double excess_of(const struct opscope__known *known, double work)
{
    const double earlier = fmax(0.0, unstopped(known) - known->growth);
    return fmax(0.0, known->growth - (work_sum > 0.0 ? earlier / work_sum * work : 0.0));
}

/* Finds the stops of this window and adds each operator's share of them to its variance.
 * `busy_ticks`: the CPU time of the threads from the window's beginning until it closed, times its
 * weight. The self time of an outer range is what the estimate for the ranges inside leaves of it,
 * so it has the error of the share of those that are not exact. */
static void share_stops(double work, double busy_ticks)
{
    double waited = -busy_ticks, squares = 0.0, all_self = 0.0, all_unstopped = 0.0, all = 0.0;
    for (size_t i = 0; i < keys.slot_count; i++) {
        struct opscope__known *known = &keys.slots[i];
        if (is_sampled_op(known)) {
            waited += known->measured - known->measured_before;
            known->excess = excess_of(known, work);
            squares += known->excess * known->excess;
            all_self += known->before[OPSCOPE__SELF];
            all_unstopped += unstopped(known);
        }
        known->measured_before = known->measured;
        known->measured = known->counted = 0.0;
    }
    for (size_t i = 0; i < keys.slot_count && waited > 0.0; i++) {
        struct opscope__known *known = &keys.slots[i];
        if (is_sampled_op(known)) {
            const double stopped = opscope__interruption_part(known->excess, waited, squares);
            known->counted = opscope__interruption_count(
                &known->interrupted, share_of(known, all_unstopped), all_shared, stopped);
            struct opscope__known *phase =
                opscope__known_find(&keys, opscope__known_phase_key(known->key));
            phase->counted += known->counted;
            phase->interrupted.stopped += stopped;
            all += known->counted;
        }
    }
    all_shared += all;
    for (size_t i = 0; i < keys.slot_count && all > 0.0; i++) {
        struct opscope__known *known = &keys.slots[i];
        if (known->key != 0 && known->is_outer) {
            const double exact = (double)opscope__outer_inside(known->key).exact_ticks;
            const double inside =
                fmax(0.0, known->before[OPSCOPE__TOTAL] - known->before[OPSCOPE__SELF] - exact);
            known->stops_inside += fmin(1.0, inside / all_self) * all;
        } else if (is_sampled_op(known) || opscope__known_is_phase(known)) {
            const double share = share_of(known, all_unstopped);
            known->sum[OPSCOPE__SELF] +=
                opscope__interruption_variance(&known->interrupted, share, known->counted, all);
            /* A stop anywhere inside a range is in its total time. */
            const double inside = fmin(1.0, known->before[OPSCOPE__TOTAL] / all_self);
            known->sum[OPSCOPE__TOTAL] += fmax(0.0, inside * all - known->added[OPSCOPE__TOTAL]);
        }
    }
}

/* ---- the file ------------------------------------------------------------------------------------- */

/* The key that the file gives it. There, the sum over all operators of a phase has operator 0. */
static uint64_t stated_key(const struct opscope__known *known)
{
    return opscope__known_is_phase(known) ? known->key - OPSCOPE__OTHER_OP_ID : known->key;
}

/* The number of contributions alike that have this sum and this sum of squares. Small ones hardly
 * count. */
static double count_alike(double sum, double squares)
{
    return squares > 0.0 ? sum * sum / squares : 1.0;
}

/* The number of windows alike that the estimate rests on: of all, or of those that met the
 * operator. */
static double rests_on(const struct opscope__known *known)
{
    const double met = count_alike(known->before[OPSCOPE__CALLS], known->squares);
    return fmin(met, count_alike(work_sum, square_sum));
}

/* From few windows, their spread is uncertain itself. One window has none, and an error as large as
 * the estimate. */
static double for_few(const struct opscope__known *known, int quantity)
{
    if (known->is_outer) {
        return 0.0;
    }
    const double windows = rests_on(known);
    const double estimate = known->before[quantity], sum = known->sum[quantity];
    const double single = fmin(1.0, fmax(0.0, ONE_WINDOW - windows));
    return fmax(sum * FEW / fmax(0.5, windows - 1.0), single * estimate * estimate - sum);
}

static double for_owed(const struct opscope__known *known, int quantity)
{
    const double now = known->owed[quantity] / SURE_ERRORS;
    return fmax(known->owed_square[quantity], now * now);
}

/* The part of the variance that may fall. */
static double passing(const struct opscope__known *known, int quantity)
{
    return for_few(known, quantity) + for_owed(known, quantity);
}

static double variance(const struct opscope__known *known, int quantity)
{
    return known->sum[quantity] + passing(known, quantity);
}

static void publish(opscope__segment *segment, struct opscope__known *known)
{
    if (known->is_outer) {
        known->sum[OPSCOPE__CALLS] = known->sum[OPSCOPE__TOTAL] = 0.0;
        known->sum[OPSCOPE__SELF] =
            opscope__outer_inside(known->key).variance + known->stops_inside;
        memset(known->owed, 0, sizeof known->owed);
        memset(known->owed_square, 0, sizeof known->owed_square);
    }
    if (known->entry == NULL && known->window_count > 0) {
        known->entry = opscope__entries_room(segment, OPSCOPE_CHUNK_VARIANCES, sizeof *known->entry,
                                             &variances);
        if (known->entry != NULL) {
            known->entry->key = stated_key(known);
            opscope__entries_add(&variances);
        }
    }
    if (known->entry != NULL) {
        opscope__store_relaxed(&known->entry->window_count, known->window_count);
        opscope__entries_show(&known->entry->calls, variance(known, OPSCOPE__CALLS));
        opscope__entries_show(&known->entry->total_ticks, variance(known, OPSCOPE__TOTAL));
        opscope__entries_show(&known->entry->self_ticks, variance(known, OPSCOPE__SELF));
        opscope__entries_show(&known->entry->calls_squared, known->squares);
        opscope__entries_show(&known->entry->calls_owed, passing(known, OPSCOPE__CALLS));
        opscope__entries_show(&known->entry->self_owed, passing(known, OPSCOPE__SELF));
    }
}

static void publish_off_cpu(opscope__segment *segment, struct opscope__known *known)
{
    const bool is_new = known->off_cpu == NULL;
    if (is_new && known->entry != NULL &&
        opscope__load_relaxed(&opscope__segment_header(segment)->main_table) != 0) {
        known->off_cpu =
            opscope__entries_room(segment, OPSCOPE_CHUNK_OFF_CPU, sizeof *known->off_cpu, &off_cpu);
    }
    opscope_off_cpu *entry = known->off_cpu;
    if (entry == NULL) {
        return;
    }
    const bool is_outer = known->is_outer;
    const struct opscope__outer_inside inside = opscope__outer_inside(known->key);
    const struct opscope__off_cpu_of *of = &known->off_cpu_of;
    opscope__entries_show(&entry->self_ticks,
                          (double)(is_outer ? of->total_ticks : of->self_ticks));
    opscope__entries_show(&entry->total_ticks,
                          (double)(is_outer ? inside.estimated_ticks : of->total_ticks));
    opscope__entries_show(&entry->exact_ticks, is_outer ? (double)inside.exact_ticks : 0.0);
    opscope__entries_show(&entry->variance, is_outer ? 0.0 : variance(known, OPSCOPE__ON_CPU));
    opscope__entries_show(&entry->owed, is_outer ? 0.0 : passing(known, OPSCOPE__ON_CPU));
    opscope__store_relaxed(&entry->count, of->count);
    if (is_new) {
        entry->key = stated_key(known);
        opscope__entries_add(&off_cpu);
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
    add_off_cpu(segment);
    for (size_t i = 0; i < keys.slot_count; i++) {
        if (keys.slots[i].key != 0) {
            deviate(&keys.slots[i], work, window->missing);
        }
    }
    share_stops(work,
                window->busy * (double)opscope__segment_header(segment)->ticks_per_second * 1e-9);
    work_sum += work;
    square_sum += work * work;
    for (size_t i = 0; i < keys.slot_count; i++) {
        if (keys.slots[i].key != 0) {
            publish(segment, &keys.slots[i]);
            publish_off_cpu(segment, &keys.slots[i]);
        }
    }
}
