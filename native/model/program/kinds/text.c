/* model/program/kinds/text.c -- texts, by their characters. */
#define _GNU_SOURCE /* memmem */
#include <string.h>

#include "model/program/kinds/index.h"
#include "model/program/kinds/kinds.h"
#include "opscope/status.h"

static int give(struct opscope__text *text, struct opscope__value *out)
{
    if (text == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    *out = opscope__value_text(text);
    return OPSCOPE_OK;
}

int opscope__str_add(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    const struct opscope__text *one = inputs[0].as.text, *other = inputs[1].as.text;
    struct opscope__text *sum = opscope__text_new(heap, NULL, one->bytes + other->bytes);
    if (sum != NULL) {
        memcpy(sum->at, one->at, one->bytes);
        memcpy(sum->at + one->bytes, other->at, other->bytes);
        opscope__text_count(sum);
    }
    return give(sum, out);
}

int opscope__str_mul(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    const struct opscope__text *text = inputs[0].as.text;
    const size_t times = inputs[1].as.integer > 0 ? (size_t)inputs[1].as.integer : 0;
    size_t bytes;
    if (__builtin_mul_overflow(text->bytes, times, &bytes)) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "a text of too many bytes");
    }
    struct opscope__text *product = opscope__text_new(heap, NULL, bytes);
    if (product != NULL) {
        /* The part that is there already is doubled until all is there. */
        size_t done = bytes < text->bytes ? bytes : text->bytes;
        memcpy(product->at, text->at, done);
        for (size_t more; done < bytes; done += more) {
            more = done < bytes - done ? done : bytes - done;
            memcpy(product->at + done, product->at, more);
        }
        opscope__text_count(product);
    }
    return give(product, out);
}

int opscope__str_len(struct opscope__heap *heap, const struct opscope__value *inputs,
                     struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_int((int64_t)inputs[0].as.text->characters);
    return OPSCOPE_OK;
}

int opscope__str_getitem(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    const struct opscope__text *text = inputs[0].as.text;
    size_t at;
    int status = opscope__index_of(inputs[1].as.integer, text->characters, "a text", &at);
    if (status != OPSCOPE_OK) {
        return status;
    }
    size_t first = opscope__text_offset(text, at), end = opscope__text_offset(text, at + 1);
    return give(opscope__text_new(heap, text->at + first, end - first), out);
}

int opscope__str_slice(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    const struct opscope__text *text = inputs[0].as.text;
    struct opscope__slice slice;
    int status = opscope__slice_of(&inputs[1], text->characters, &slice);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (slice.step == 1) {
        size_t first = opscope__text_offset(text, slice.first);
        size_t end = opscope__text_offset(text, slice.first + slice.count);
        return give(opscope__text_new(heap, text->at + first, slice.count > 0 ? end - first : 0),
                    out);
    }
    /* Each character takes four bytes at most. */
    struct opscope__text *room = opscope__text_new(heap, NULL, text->bytes);
    if (room == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    size_t bytes = 0;
    for (size_t i = 0; i < slice.count; i++) {
        size_t at = opscope__slice_at(&slice, i);
        size_t first = opscope__text_offset(text, at), end = opscope__text_offset(text, at + 1);
        memcpy(room->at + bytes, text->at + first, end - first);
        bytes += end - first;
    }
    status = give(opscope__text_new(heap, room->at, bytes), out);
    const struct opscope__value scratch = opscope__value_text(room);
    opscope__value_release(&scratch);
    return status;
}

int opscope__str_contains(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    const struct opscope__text *text = inputs[0].as.text, *part = inputs[1].as.text;
    *out = opscope__value_bool(part->bytes == 0 ||
                               memmem(text->at, text->bytes, part->at, part->bytes) != NULL);
    return OPSCOPE_OK;
}
