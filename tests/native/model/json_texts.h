/* tests/native/model/json_texts.h -- JSON for tests: a text that has to be read, and why one is to
 * be refused. */
#ifndef OPSCOPE_TESTS_JSON_TEXTS_H
#define OPSCOPE_TESTS_JSON_TEXTS_H

#include "tree.h"

static inline struct opscope__document *parse(const char *text)
{
    struct opscope__document *document = NULL;
    /* A copy without a NUL behind it, so that the sanitizers see what is read beyond its end. */
    size_t bytes = strlen(text);
    char *exact = malloc(bytes > 0 ? bytes : 1);
    CHECK(exact != NULL);
    memcpy(exact, text, bytes);
    int status = opscope__json_parse(exact, bytes, &document);
    if (status != OPSCOPE_OK) {
        fprintf(stderr, "%.200s: %s\n", text, opscope_tensor_error());
    }
    CHECK_EQUAL(status, OPSCOPE_OK);
    free(exact);
    CHECK_EQUAL(opscope__document_end(document), bytes);
    tree_check(opscope__document_root(document));
    tree_check_memory(document, bytes);
    return document;
}

static inline void refuse_bytes(const char *text, size_t bytes, const char *reason)
{
    struct opscope__document *document = NULL;
    CHECK_EQUAL(opscope__json_parse(text, bytes, &document), OPSCOPE_ERR_INVALID);
    CHECK_TEXT(opscope_tensor_error(), reason);
    CHECK(document == NULL);
}

static inline void refuse(const char *text, const char *reason)
{
    refuse_bytes(text, strlen(text), reason);
}

#endif
