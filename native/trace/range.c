/* trace/range.c -- the tracer's hot path: writes the record of a range at its start, and fills in
 * its end later. This file also writes the names and labels that precede a range. trace/block.c
 * says where records go.
 *
 * Nothing here locks, allocates, logs or enters the kernel, except for a thread's first record in a
 * trace and its next block.
 */
#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "base/clock.h"
#include "base/hot.h"
#include "record/debug_info.h"
#include "record/range.h"
#include "record/shape.h"

enum {
    NAME_BYTES = 256, /* with the NUL, as the other texts */
    KEY_BYTES = 64,
    VALUE_BYTES = 128,
    LABEL_LIMIT = 8, /* innermost first */
    TEXT_BYTES = LABEL_LIMIT * (KEY_BYTES + VALUE_BYTES),
    INFO_WORDS = 2,
    SHAPE_WORDS = 96,                                     /* of all inputs; longer lists are cut */
    MOST_WORDS = OPSCOPE__TRACE_RECORD_WORDS + INFO_WORDS /* of a range without shapes */
};

_Static_assert(sizeof(opscope_trace_record) == 24 && sizeof(opscope_trace_block) == 64,
               "as in TRACE.md");
_Static_assert(2 * NAME_BYTES <= TEXT_BYTES && TEXT_BYTES / sizeof(uint64_t) <= UINT8_MAX &&
                   INFO_WORDS + 1 + SHAPE_WORDS <= UINT8_MAX,
               "what follows a record is counted in a byte");

/* ---- room -------------------------------------------------------------------------------------- */

void OPSCOPE__COLD opscope__trace_lose(struct opscope__trace *trace,
                                       const struct opscope__trace_thread *state)
{
    if (trace->is_scratch) {
        return;
    }
    if (state != NULL && state->block != NULL) {
        /* Partner: the reader of the file. */
        opscope__store_relaxed(&state->block->lost_count, state->block->lost_count + 1);
    } else {
        opscope__add_relaxed(&opscope__trace_header(trace)->lost_count, 1);
    }
}

opscope_trace_record *opscope__trace_take(struct opscope__trace *trace,
                                          struct opscope__trace_thread *state, uint32_t more)
{
    const ptrdiff_t words = OPSCOPE__TRACE_RECORD_WORDS + (ptrdiff_t)more;
    if (state->end - state->next < words &&
        (trace->is_scratch || state->is_full ||
         !opscope__trace_block_open(trace, state, opscope__hot.thread->id))) {
        return NULL;
    }
    opscope_trace_record *record = (opscope_trace_record *)(void *)state->next;
    record->more = (uint8_t)more;
    state->next += words;
    return record;
}

/* Complete, and visible to later readers. */
static void publish(opscope_trace_record *record, uint64_t start_ticks)
{
    /* Partner: the reader of the file. A reader that sees `start_ticks` also sees the rest of the
     * record. */
    opscope__store_release(&record->start_ticks, start_ticks);
}

/* ---- names and labels ---------------------------------------------------------------------------- */

static opscope_trace_record *write_text(struct opscope__trace *trace,
                                        struct opscope__trace_thread *state, uint8_t kind,
                                        const char *text, size_t bytes)
{
    opscope_trace_record *record = opscope__trace_take(
        trace, state, (uint32_t)((bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t)));
    if (record != NULL) {
        record->kind = kind;
        memcpy(record + 1, text, bytes);
    }
    return record;
}

static size_t append(char *into, const char *text, size_t limit)
{
    size_t bytes = strnlen(text, limit - 1);
    memcpy(into, text, bytes);
    into[bytes] = '\0';
    return bytes + 1;
}

static bool write_name(struct opscope__trace *trace, struct opscope__trace_thread *state,
                       const opscope_op *op)
{
    char text[2 * NAME_BYTES];
    /* Operators with one id and several overloads (PyTorch's) all get the name of the first. */
    const opscope_op *named = opscope_op_by_id(op->id);
    named = named != NULL ? named : op;
    size_t bytes = append(text, named->name, NAME_BYTES);
    bytes += append(text + bytes, named->overload_name, NAME_BYTES);
    opscope_trace_record *record = write_text(trace, state, OPSCOPE_TRACE_NAME, text, bytes);
    if (record == NULL) {
        return false;
    }
    record->op = op->id;
    record->phase = op->phase;
    record->flags = op->scope;
    publish(record, opscope__ticks());
    /* Only threads of this process read it. Two threads that find 0 both write the name, which is
     * harmless. */
    opscope__store_relaxed(&trace->op_is_named[op->id], 1);
    return true;
}

static bool is_shadowed(const opscope_debug_info *chain, const opscope_debug_info *link)
{
    for (; chain != link; chain = chain->parent) {
        if (strcmp(chain->key, link->key) == 0) {
            return true;
        }
    }
    return false;
}

/* The labels in force, innermost first, each key once. */
static size_t label_text(const opscope_debug_info *chain, char *into)
{
    size_t bytes = 0;
    int count = 0;
    for (const opscope_debug_info *link = chain; link != NULL && count < LABEL_LIMIT;
         link = link->parent) {
        if (link->value != NULL && !is_shadowed(chain, link)) {
            bytes += append(into + bytes, link->key, KEY_BYTES);
            bytes += append(into + bytes, link->value, VALUE_BYTES);
            count++;
        }
    }
    return bytes;
}

static void write_labels(struct opscope__trace *trace, struct opscope__trace_thread *state,
                         const struct opscope__thread *thread)
{
    char text[TEXT_BYTES];
    size_t bytes = label_text(thread->debug_info, text);
    if (bytes == 0 && !state->has_labels) {
        state->labels_are_stale = false;
        return;
    }
    opscope_trace_record *record = write_text(trace, state, OPSCOPE_TRACE_LABELS, text, bytes);
    if (record != NULL) {
        publish(record, opscope__ticks());
        state->has_labels = bytes != 0;
        state->labels_are_stale = false;
    }
}

/* ---- start ------------------------------------------------------------------------------------- */

static struct opscope__trace_thread *state_for(struct opscope__trace *trace,
                                               struct opscope__thread *thread)
{
    struct opscope__trace_thread *state = thread->trace;
    if (state == NULL) {
        state = calloc(1, sizeof *state);
        thread->trace = state;
    }
    if (state != NULL && state->serial != trace->serial) {
        *state = (struct opscope__trace_thread){.serial = trace->serial,
                                                .block_bytes = OPSCOPE_TRACE_BLOCK_UNIT,
                                                .labels_are_stale = true};
    }
    return state;
}

struct opscope__trace_thread *opscope__trace_thread_open(struct opscope__trace *trace,
                                                         struct opscope__thread *thread)
{
    struct opscope__trace_thread *state = state_for(trace, thread);
    if (state == NULL) {
        return NULL;
    }
    if (state->labels_are_stale && !state->is_full) {
        write_labels(trace, state, thread);
    }
    state->limit = state->labels_are_stale ? state->next : state->end;
    return state;
}

static inline bool has_numbers(const opscope_range_info *info)
{
    return info != NULL && (info->sequence_nr >= 0 || info->forward_thread_id != 0);
}

static inline void write_numbers(opscope_trace_record *record, const opscope_range_info *info)
{
    uint64_t *words = opscope__trace_words(record);
    words[0] = (uint64_t)(info != NULL ? info->sequence_nr : -1);
    words[1] = info != NULL ? info->forward_thread_id : 0;
}

/* All but the words that follow the record. */
static inline void describe(opscope_trace_record *record, const opscope_range *fn, uint8_t more)
{
    const opscope_op *op = fn->op;
    uint8_t flags = op->scope == OPSCOPE_BACKWARD_FUNCTION ? OPSCOPE_TRACE_BACKWARD : 0;
    if (fn->info != NULL && fn->info->is_async) {
        flags |= OPSCOPE_TRACE_ASYNC;
    }
    record->op = op->id;
    record->kind = OPSCOPE_TRACE_RANGE;
    record->phase = op->phase;
    record->flags = flags;
    record->more = more;
}

/* Reads the clock last, so that the range's time does not include the writing of the record. */
static inline int start_clock(struct opscope__trace *trace, struct opscope__trace_thread *state,
                              opscope_trace_record *record, void **context)
{
    uint64_t now = opscope__ticks();
    if (__builtin_expect(now >= trace->deadline_ticks, 0)) {
        state->next =
            (uint64_t *)(void *)record; /* without a start, the record marks the end of the block */
        trace->expire(trace);
        return OPSCOPE_OK;
    }
    *context = record;
    publish(record, now);
    return OPSCOPE_OK;
}

/* A record for the range, after its name and labels if they are missing; NULL if the range is
 * lost. */
static opscope_trace_record *OPSCOPE__COLD take_slow(struct opscope__trace *trace,
                                                     const opscope_range *fn, uint32_t more,
                                                     struct opscope__trace_thread **out)
{
    if (opscope__ticks() >= trace->deadline_ticks) {
        trace->expire(trace);
        return NULL;
    }
    struct opscope__trace_thread *state = opscope__trace_thread_open(trace, opscope__hot.thread);
    opscope_trace_record *record = NULL;
    /* Without its name, or under wrong labels, the range would mislead: it is lost instead. */
    if (state != NULL && !state->labels_are_stale &&
        (opscope__load_relaxed(&trace->op_is_named[fn->op->id]) ||
         write_name(trace, state, fn->op))) {
        record = opscope__trace_take(trace, state, more);
        state->limit = state->end;
    }
    if (record == NULL) {
        opscope__trace_lose(trace, state);
    }
    *out = state;
    return record;
}

static inline bool is_ready(const struct opscope__trace *trace,
                            const struct opscope__trace_thread *state, const opscope_op *op)
{
    return state != NULL && state->serial == trace->serial &&
           state->limit - state->next >= MOST_WORDS &&
           opscope__load_relaxed(&trace->op_is_named[op->id]);
}

int OPSCOPE__HOT opscope__trace_range_start(const opscope_range *fn, void *user, void **context)
{
    struct opscope__trace *trace = user;
    struct opscope__trace_thread *state = opscope__hot.thread->trace;
    opscope_trace_record *record;
    const bool numbered = has_numbers(fn->info);
    const uint8_t more = numbered ? INFO_WORDS : 0;
    if (__builtin_expect(is_ready(trace, state, fn->op), 1)) {
        record = (opscope_trace_record *)(void *)state->next;
        state->next += OPSCOPE__TRACE_RECORD_WORDS + more;
    } else if ((record = take_slow(trace, fn, more, &state)) == NULL) {
        return OPSCOPE_OK;
    }
    describe(record, fn, more);
    if (numbered) {
        write_numbers(record, fn->info);
    }
    return start_clock(trace, state, record, context);
}

/* ---- shapes -------------------------------------------------------------------------------------- */

/* Writes the rank and sizes of each input, or -1 for an input that is no array; returns the number
 * of words. */
static uint32_t read_shapes(const opscope_range *fn, int64_t *words, bool *cut)
{
    size_t count;
    const opscope_value *values = opscope_fn_inputs(fn, &count);
    uint32_t used = 0;
    *cut = false;
    for (size_t i = 0; i < count; i++) {
        int64_t sizes[OPSCOPE__RANK_LIMIT];
        int rank = opscope__shape_read(&values[i], sizes);
        uint32_t needed = 1 + (rank > 0 ? (uint32_t)rank : 0);
        if (used + needed > SHAPE_WORDS) {
            *cut = true;
            break;
        }
        words[used++] = rank;
        for (int at = 0; at < rank; at++) {
            words[used++] = sizes[at];
        }
    }
    return used;
}

int opscope__trace_range_start_shapes(const opscope_range *fn, void *user, void **context)
{
    struct opscope__trace *trace = user;
    struct opscope__trace_thread *state;
    int64_t shapes[SHAPE_WORDS];
    bool cut;
    const uint32_t count = read_shapes(fn, shapes, &cut);
    const uint8_t more = (uint8_t)(INFO_WORDS + 1 + count);
    opscope_trace_record *record = take_slow(trace, fn, more, &state);
    if (record == NULL) {
        return OPSCOPE_OK;
    }
    describe(record, fn, more);
    record->flags |= cut ? OPSCOPE_TRACE_CUT : 0;
    write_numbers(record, fn->info);
    opscope__trace_words(record)[INFO_WORDS] = count; /* also if 0: a range without inputs */
    memcpy(opscope__trace_words(record) + INFO_WORDS + 1, shapes, count * sizeof *shapes);
    return start_clock(trace, state, record, context);
}

/* ---- end --------------------------------------------------------------------------------------- */

int OPSCOPE__HOT opscope__trace_range_end(const opscope_range *fn, void *user, void *context)
{
    uint64_t now = opscope__ticks();
    opscope_trace_record *record = context;
    (void)user;
    if (__builtin_expect(record == NULL, 0)) {
        return OPSCOPE_OK;
    }
    if (__builtin_expect(fn->failed != 0, 0)) {
        record->flags |= (fn->failed & OPSCOPE__FAILED) != 0 ? OPSCOPE_TRACE_FAILED : 0;
        if ((fn->failed & OPSCOPE__LOST) != 0) {
            record->flags |= OPSCOPE_TRACE_LOST; /* it ended at an unknown time */
            return OPSCOPE_OK;
        }
    }
    /* Partner: the reader of the file. */
    opscope__store_release(&record->end_ticks, now);
    return OPSCOPE_OK;
}
