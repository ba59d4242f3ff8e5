/* model/program/value.c -- the references and the memory of values. */
#include "model/program/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"

static const uint32_t FOREVER = UINT32_MAX;

/* ---- heaps ----------------------------------------------------------------------------------- */

void opscope__heap_below(struct opscope__heap *below, struct opscope__heap *heap)
{
    below->limit_bytes = heap->limit_bytes;
    below->above = heap->above != NULL ? heap->above : heap;
}

/* Whether all of it are within the limit, if this heap has so many. */
static bool fits(struct opscope__heap *heap, size_t bytes)
{
    size_t live = heap->live_bytes + bytes, others;
    if (heap->above == NULL) {
        others = opscope__load_relaxed(&heap->below_bytes);
    } else {
        live = opscope__add_relaxed(&heap->above->below_bytes, bytes) + bytes;
        others = opscope__load_relaxed(&heap->above->live_bytes);
    }
    bool is_within = live <= heap->limit_bytes && others <= heap->limit_bytes - live;
    if (!is_within && heap->above != NULL) {
        opscope__add_relaxed(&heap->above->below_bytes, 0 - bytes);
    }
    return is_within;
}

bool opscope__heap_take(struct opscope__heap *heap, size_t bytes)
{
    if (heap->limit_bytes > 0 && (bytes > heap->limit_bytes || !fits(heap, bytes))) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "lists and texts need more than %zu bytes",
                            heap->limit_bytes);
        return false;
    }
    opscope__store_relaxed(&heap->live_bytes, heap->live_bytes + bytes);
    return true;
}

void opscope__heap_give(struct opscope__heap *heap, size_t bytes)
{
    opscope__store_relaxed(&heap->live_bytes, heap->live_bytes - bytes);
    if (heap->limit_bytes > 0 && heap->above != NULL) {
        opscope__add_relaxed(&heap->above->below_bytes, 0 - bytes);
    }
}

static void *allocate(struct opscope__heap *heap, size_t bytes)
{
    if (!opscope__heap_take(heap, bytes)) {
        return NULL;
    }
    void *memory = malloc(bytes);
    if (memory == NULL) {
        opscope__heap_give(heap, bytes);
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    return memory;
}

/* ---- references ------------------------------------------------------------------------------ */

static void text_release(struct opscope__text *text)
{
    if (text->references != FOREVER && --text->references == 0) {
        opscope__heap_give(text->heap, sizeof *text + text->bytes + 1);
        free(text);
    }
}

void opscope__sequence_release(struct opscope__sequence *sequence)
{
    if (sequence == NULL || --sequence->references > 0) {
        return;
    }
    for (size_t i = 0; i < sequence->count; i++) {
        opscope__value_release(&sequence->items[i]);
    }
    opscope__heap_give(sequence->heap, sizeof *sequence + sequence->room * sizeof *sequence->items);
    free(sequence->items);
    free(sequence);
}

void opscope__value_drop(const struct opscope__value *value)
{
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_TENSOR:
        opscope_tensor_release(value->as.tensor);
        break;
    case OPSCOPE__VALUE_TEXT:
        text_release(value->as.text);
        break;
    case OPSCOPE__VALUE_LIST:
    case OPSCOPE__VALUE_TUPLE:
        opscope__sequence_release(value->as.sequence);
        break;
    case OPSCOPE__VALUE_FUTURE:
        value->as.future->references--;
        break;
    default:
        break;
    }
}

void opscope__value_hold(const struct opscope__value *value)
{
    switch ((enum opscope__value_kind)value->kind) {
    case OPSCOPE__VALUE_TENSOR:
        opscope_tensor_retain(value->as.tensor);
        break;
    case OPSCOPE__VALUE_TEXT:
        /* Threads share a constant's text: not even the same number is written to it. */
        if (value->as.text->references != FOREVER) {
            value->as.text->references++;
        }
        break;
    case OPSCOPE__VALUE_LIST:
    case OPSCOPE__VALUE_TUPLE:
        value->as.sequence->references++;
        break;
    case OPSCOPE__VALUE_FUTURE:
        value->as.future->references++;
        break;
    default:
        break;
    }
}

/* ---- texts ------------------------------------------------------------------------------------ */

static bool begins_character(char byte)
{
    return ((uint8_t)byte & 0xC0) != 0x80;
}

void opscope__text_count(struct opscope__text *text)
{
    text->characters = 0;
    for (size_t i = 0; i < text->bytes; i++) {
        text->characters += begins_character(text->at[i]);
    }
}

static void text_fill(struct opscope__text *text, struct opscope__heap *heap, const char *bytes,
                      size_t size)
{
    *text = (struct opscope__text){.references = 1, .bytes = size, .heap = heap};
    text->at[size] = '\0';
    if (bytes != NULL) {
        memcpy(text->at, bytes, size);
        opscope__text_count(text);
    }
}

struct opscope__text *opscope__text_new(struct opscope__heap *heap, const char *bytes, size_t size)
{
    struct opscope__text *text;
    if (size > SIZE_MAX / 2) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "a text of too many bytes");
        return NULL;
    }
    text = allocate(heap, sizeof *text + size + 1);
    if (text != NULL) {
        text_fill(text, heap, bytes, size);
    }
    return text;
}

struct opscope__text *opscope__text_forever(const char *bytes, size_t size)
{
    struct opscope__text *text = malloc(sizeof *text + size + 1);
    if (text == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
        return NULL;
    }
    text_fill(text, NULL, bytes, size);
    text->references = FOREVER;
    return text;
}

size_t opscope__text_offset(const struct opscope__text *text, size_t character)
{
    if (text->characters == text->bytes || character >= text->characters) {
        return character >= text->characters ? text->bytes : character;
    }
    size_t at = 0;
    for (size_t seen = 0; at < text->bytes; at++) {
        seen += begins_character(text->at[at]);
        if (seen > character) {
            break;
        }
    }
    return at;
}

/* ---- lists and tuples ------------------------------------------------------------------------- */

struct opscope__sequence *opscope__sequence_new(struct opscope__heap *heap, size_t room)
{
    struct opscope__sequence *sequence = allocate(heap, sizeof *sequence);
    if (sequence == NULL) {
        return NULL;
    }
    *sequence = (struct opscope__sequence){.references = 1, .heap = heap};
    if (room > 0 && opscope__sequence_reserve(sequence, room) != OPSCOPE_OK) {
        opscope__sequence_release(sequence);
        return NULL;
    }
    return sequence;
}

int opscope__sequence_reserve(struct opscope__sequence *sequence, size_t room)
{
    if (room <= sequence->room) {
        return OPSCOPE_OK;
    }
    if (room > SIZE_MAX / 2 / sizeof *sequence->items) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "a list of too many items");
    }
    size_t more = (room - sequence->room) * sizeof *sequence->items;
    if (!opscope__heap_take(sequence->heap, more)) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    struct opscope__value *larger = realloc(sequence->items, room * sizeof *larger);
    if (larger == NULL) {
        opscope__heap_give(sequence->heap, more);
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    sequence->items = larger;
    sequence->room = room;
    return OPSCOPE_OK;
}

int opscope__sequence_push(struct opscope__sequence *sequence, struct opscope__value item)
{
    if (sequence->count == sequence->room) {
        int status = opscope__sequence_reserve(sequence, 2 * sequence->count + 4);
        if (status != OPSCOPE_OK) {
            opscope__value_release(&item);
            return status;
        }
    }
    sequence->items[sequence->count++] = item;
    return OPSCOPE_OK;
}

int opscope__sequence_push_all(struct opscope__sequence *sequence,
                               const struct opscope__value *items, size_t count)
{
    bool is_own = items == sequence->items;
    size_t needed = sequence->count + count;
    int status = OPSCOPE_OK;
    if (needed > sequence->room) {
        size_t room = needed > 2 * sequence->count ? needed : 2 * sequence->count;
        status = opscope__sequence_reserve(sequence, room);
        items = is_own ? sequence->items : items; /* they may have moved */
    }
    for (size_t i = 0; status == OPSCOPE_OK && i < count; i++) {
        sequence->items[sequence->count++] = opscope__value_retain(&items[i]);
    }
    return status;
}

/* ---- comparison ------------------------------------------------------------------------------- */

bool opscope__value_equal(const struct opscope__value *one, const struct opscope__value *other)
{
    if (one->kind != other->kind) {
        return false;
    }
    switch ((enum opscope__value_kind)one->kind) {
    case OPSCOPE__VALUE_FLOAT:
        return one->as.real == other->as.real;
    case OPSCOPE__VALUE_TENSOR:
        return one->as.tensor == other->as.tensor;
    case OPSCOPE__VALUE_FUTURE:
        return one->as.future == other->as.future;
    case OPSCOPE__VALUE_TEXT:
        return one->as.text->bytes == other->as.text->bytes &&
               memcmp(one->as.text->at, other->as.text->at, one->as.text->bytes) == 0;
    case OPSCOPE__VALUE_LIST:
    case OPSCOPE__VALUE_TUPLE:
        if (one->as.sequence->count != other->as.sequence->count) {
            return false;
        }
        for (size_t i = 0; i < one->as.sequence->count; i++) {
            if (!opscope__value_equal(&one->as.sequence->items[i], &other->as.sequence->items[i])) {
                return false;
            }
        }
        return true;
    default:
        return one->as.integer == other->as.integer;
    }
}
