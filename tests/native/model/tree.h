/* tests/native/model/tree.h -- documents for tests: parsed from bytes, and printed as text.
 *
 * The text has one line for each item, as make_pickles.py writes it.
 */
#ifndef OPSCOPE_TESTS_TREE_H
#define OPSCOPE_TESTS_TREE_H

#include <inttypes.h>
#include <stdlib.h>

#include "../check.h"
#include "model/document/json.h"
#include "model/document/pickle.h"
#include "opscope/status.h"
#include "opscope/tensor.h"

static void tree_print_bytes(FILE *file, const struct opscope__item *item)
{
    for (uint32_t i = 0; i < item->count; i++) {
        fprintf(file, "%02x", (unsigned)(uint8_t)item->as.text[i]);
    }
}

static void tree_print_value(FILE *file, const struct opscope__item *item)
{
    switch (item->kind) {
    case OPSCOPE__ITEM_BOOL:
        fprintf(file, " %d", item->as.boolean);
        break;
    case OPSCOPE__ITEM_INT:
        fprintf(file, " %" PRId64, item->as.integer);
        break;
    case OPSCOPE__ITEM_FLOAT:
        fprintf(file, " %.17g", item->as.real);
        break;
    case OPSCOPE__ITEM_TEXT:
    case OPSCOPE__ITEM_BYTES:
        fputc(' ', file);
        tree_print_bytes(file, item);
        break;
    case OPSCOPE__ITEM_GLOBAL:
        fprintf(file, " %s", item->as.text);
        break;
    case OPSCOPE__ITEM_LIST:
    case OPSCOPE__ITEM_TUPLE:
    case OPSCOPE__ITEM_MAP:
        fprintf(file, " %u", item->count);
        break;
    case OPSCOPE__ITEM_CALL:
        fprintf(file, " %u %d", item->count, item->as.object->state != NULL);
        break;
    default:
        break;
    }
}

static void tree_print(FILE *file, const struct opscope__item *item, int depth)
{
    fprintf(file, "%*s%s", 2 * depth, "", opscope__item_kind_name(item));
    tree_print_value(file, item);
    fputc('\n', file);
    if (item->kind == OPSCOPE__ITEM_CALL) {
        tree_print(file, item->as.object->function, depth + 1);
        tree_print(file, item->as.object->arguments, depth + 1);
        if (item->as.object->state != NULL) {
            tree_print(file, item->as.object->state, depth + 1);
        }
    }
    if (item->kind == OPSCOPE__ITEM_PERSISTENT) {
        tree_print(file, item->as.id, depth + 1);
    }
    bool has_items = item->kind == OPSCOPE__ITEM_LIST || item->kind == OPSCOPE__ITEM_TUPLE;
    for (uint32_t i = 0; has_items && i < item->count; i++) {
        tree_print(file, item->as.items[i], depth + 1);
    }
    const struct opscope__pair *pairs = opscope__item_pairs(item);
    for (uint32_t i = 0; pairs != NULL && i < item->count; i++) {
        tree_print(file, pairs[i].key, depth + 1);
        tree_print(file, pairs[i].value, depth + 1);
    }
}

/* To be freed. */
static inline char *tree_text(const struct opscope__document *document)
{
    char *text = NULL;
    size_t bytes;
    FILE *file = open_memstream(&text, &bytes);
    CHECK(file != NULL);
    tree_print(file, opscope__document_root(document), 0);
    CHECK(fclose(file) == 0);
    return text;
}

/* Checks what every document promises to those who walk through it; returns what it weighs. */
static uint64_t tree_check(const struct opscope__item *item)
{
    CHECK(item->depth >= 1 && item->depth <= OPSCOPE__DEPTH_LIMIT);
    uint64_t visited = 1;
    unsigned depth = 1;
    const struct opscope__item *fixed[3] = {NULL, NULL, NULL};
    if (item->kind == OPSCOPE__ITEM_CALL) {
        fixed[0] = item->as.object->function;
        fixed[1] = item->as.object->arguments;
        fixed[2] = item->as.object->state;
        CHECK_EQUAL(fixed[0]->kind, OPSCOPE__ITEM_GLOBAL);
    } else if (item->kind == OPSCOPE__ITEM_PERSISTENT) {
        fixed[0] = item->as.id;
    } else if (item->kind == OPSCOPE__ITEM_TEXT || item->kind == OPSCOPE__ITEM_GLOBAL ||
               item->kind == OPSCOPE__ITEM_BYTES) {
        CHECK(item->as.text[item->count] == '\0');
        visited += item->count / OPSCOPE__EXPANDED_TEXT_BYTES;
    }
    const struct opscope__pair *pairs = opscope__item_pairs(item);
    bool has_items = item->kind == OPSCOPE__ITEM_LIST || item->kind == OPSCOPE__ITEM_TUPLE;
    uint32_t children = 3 + (has_items ? item->count : pairs != NULL ? 2 * item->count : 0);
    for (uint32_t i = 0; i < children; i++) {
        const struct opscope__item *child = i < 3              ? fixed[i]
                                            : has_items        ? item->as.items[i - 3]
                                            : (i - 3) % 2 == 0 ? pairs[(i - 3) / 2].key
                                                               : pairs[(i - 3) / 2].value;
        if (child != NULL) {
            visited += tree_check(child);
            depth = child->depth + 1u > depth ? child->depth + 1u : depth;
        }
    }
    for (uint32_t i = 0; pairs != NULL && i < item->count; i++) {
        const struct opscope__item *key = pairs[i].key;
        if (key->kind == OPSCOPE__ITEM_TEXT && strlen(key->as.text) == key->count) {
            CHECK(opscope__item_find(item, key->as.text) == pairs[i].value);
        }
    }
    CHECK_EQUAL(item->depth, depth);
    CHECK_EQUAL(item->expanded, visited);
    return visited;
}

/* Memory of a document of that many bytes: in proportion, and what any document costs. */
static inline void tree_check_memory(const struct opscope__document *document, size_t input_bytes)
{
    CHECK(opscope__document_bytes(document) <= OPSCOPE__BYTES_FOR_BYTE * input_bytes + 2048);
}

#endif
