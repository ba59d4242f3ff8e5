/* model/document/build.c -- how parsers make a document: memory, items, failures. */
#include "model/document/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/document/arena.h"
#include "opscope/tensor.h"

struct opscope__document {
    struct opscope__arena arena;
    const struct opscope__item *root;
    size_t end;
    size_t item_count;
};

/* Never written: a walk takes them for visited. */
struct opscope__item opscope__item_none = {.kind = OPSCOPE__ITEM_NONE, .depth = 1, .expanded = 1};
struct opscope__item opscope__item_true = {
    .kind = OPSCOPE__ITEM_BOOL, .depth = 1, .expanded = 1, .as.boolean = true};
struct opscope__item opscope__item_false = {.kind = OPSCOPE__ITEM_BOOL, .depth = 1, .expanded = 1};
struct opscope__item opscope__item_empty_tuple = {
    .kind = OPSCOPE__ITEM_TUPLE, .depth = 1, .expanded = 1};

int opscope__document_fail_va(size_t offset, const char *format, va_list arguments)
{
    char text[400];
    vsnprintf(text, sizeof text, format, arguments);
    return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "byte %zu: %s", offset, text);
}

int opscope__document_fail(size_t offset, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = opscope__document_fail_va(offset, format, arguments);
    va_end(arguments);
    return status;
}

int opscope__document_no_memory(void)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
}

int opscope__document_failed(void)
{
    return opscope_tensor_error_kind() == OPSCOPE_ERROR_MEMORY ? OPSCOPE_ERR_NO_MEMORY
                                                               : OPSCOPE_ERR_INVALID;
}

struct opscope__printable opscope__printable(const char *bytes, size_t size)
{
    struct opscope__printable out = {""};
    size_t room = sizeof out.text - sizeof "...", shown = size < room ? size : room;
    for (size_t i = 0; i < shown; i++) {
        out.text[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
    }
    if (shown < size) {
        memcpy(out.text + shown, "...", sizeof "...");
    }
    return out;
}

struct opscope__document *opscope__document_new(size_t input_bytes)
{
    if (input_bytes > OPSCOPE__INPUT_BYTES_LIMIT) {
        opscope__document_fail(0, "%zu bytes, more than the %d that are read", input_bytes,
                               OPSCOPE__INPUT_BYTES_LIMIT);
        return NULL;
    }
    struct opscope__document *document = calloc(1, sizeof *document);
    if (document == NULL) {
        opscope__document_no_memory();
    }
    return document;
}

void *opscope__document_memory(struct opscope__document *document, size_t bytes)
{
    void *memory = opscope__arena_take(&document->arena, bytes);
    if (memory == NULL) {
        opscope__document_no_memory();
    }
    return memory;
}

void *opscope__document_grow(struct opscope__document *document, void *array, size_t count,
                             size_t more, size_t element_bytes)
{
    /* Where no other length is known, room is the next power of two. */
    size_t room = 1, wanted = 1;
    while (room < count) {
        room *= 2;
    }
    if (array != NULL && count + more <= room) {
        return array;
    }
    while (wanted < count + more) {
        wanted *= 2;
    }
    void *larger = opscope__document_memory(document, wanted * element_bytes);
    if (larger != NULL && count > 0) {
        memcpy(larger, array, count * element_bytes);
    }
    return larger;
}

struct opscope__item *opscope__item_new(struct opscope__document *document,
                                        enum opscope__item_kind kind, size_t offset)
{
    if (document->item_count == OPSCOPE__ITEM_LIMIT) {
        opscope__document_fail(offset, "more than %d items", OPSCOPE__ITEM_LIMIT);
        return NULL;
    }
    struct opscope__item *item = opscope__document_memory(document, sizeof *item);
    if (item != NULL) {
        *item = (struct opscope__item){.kind = (uint16_t)kind, .offset = (uint32_t)offset};
        document->item_count++;
    }
    return item;
}

struct opscope__item *opscope__item_new_text(struct opscope__document *document,
                                             enum opscope__item_kind kind, const char *bytes,
                                             size_t size, size_t offset)
{
    struct opscope__item *item = opscope__item_new(document, kind, offset);
    char *copy = item != NULL ? opscope__document_memory(document, size + 1) : NULL;
    if (copy == NULL) {
        return NULL;
    }
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    item->as.text = copy;
    item->count = (uint32_t)size;
    return item;
}

struct opscope__item *opscope__item_new_items(struct opscope__document *document,
                                              enum opscope__item_kind kind,
                                              struct opscope__item *const *items, size_t count,
                                              size_t offset)
{
    struct opscope__item *item = opscope__item_new(document, kind, offset);
    if (item == NULL || count == 0) {
        return item;
    }
    item->as.items = opscope__document_memory(document, count * sizeof *items);
    if (item->as.items == NULL) {
        return NULL;
    }
    memcpy(item->as.items, items, count * sizeof *items);
    item->count = (uint32_t)count;
    return item;
}

void opscope__document_set_root(struct opscope__document *document,
                                const struct opscope__item *root, size_t end)
{
    document->root = root;
    document->end = end;
}

const struct opscope__item *opscope__document_root(const struct opscope__document *document)
{
    return document->root;
}

size_t opscope__document_end(const struct opscope__document *document)
{
    return document->end;
}

size_t opscope__document_bytes(const struct opscope__document *document)
{
    return sizeof *document + document->arena.bytes;
}

void opscope__document_release(struct opscope__document *document)
{
    if (document != NULL) {
        opscope__arena_free(&document->arena);
        free(document);
    }
}
