/* model/document/build.h -- how parsers make a document: memory, items, failures.
 *
 * A parser makes a document, adds items, and finishes it with the root. Functions that return a
 * pointer return NULL after a failure that they have reported with opscope__document_fail.
 */
#ifndef OPSCOPE_MODEL_BUILD_H
#define OPSCOPE_MODEL_BUILD_H

#include <stdarg.h>

#include "model/document/document.h"

/* Items that many places share, so that they cost no memory. */
extern struct opscope__item opscope__item_none, opscope__item_true, opscope__item_false,
    opscope__item_empty_tuple;

/* NULL where the input is too long or memory runs out. */
struct opscope__document *opscope__document_new(size_t input_bytes);
/* Memory for as long as the document lives, aligned for any item. */
void *opscope__document_memory(struct opscope__document *document, size_t bytes);
/* A new item, all else 0; fails beyond the limit of items. */
struct opscope__item *opscope__item_new(struct opscope__document *document,
                                        enum opscope__item_kind kind, size_t offset);
/* A TEXT, BYTES or GLOBAL with a copy of the bytes. */
struct opscope__item *opscope__item_new_text(struct opscope__document *document,
                                             enum opscope__item_kind kind, const char *bytes,
                                             size_t size, size_t offset);
/* A LIST or TUPLE of these items. */
struct opscope__item *opscope__item_new_items(struct opscope__document *document,
                                              enum opscope__item_kind kind,
                                              struct opscope__item *const *items, size_t count,
                                              size_t offset);
/* Makes room for `more` further elements behind the `count` of an array that began empty and only
 * grew by this function; returns where the array is now. */
void *opscope__document_grow(struct opscope__document *document, void *array, size_t count,
                             size_t more, size_t element_bytes);
void opscope__document_set_root(struct opscope__document *document,
                                const struct opscope__item *root, size_t end);
/* Checks the tree below `root` (finish.c) and makes it the document's. `end`: bytes read. */
int opscope__document_finish(struct opscope__document *document, struct opscope__item *root,
                             size_t end);

/* The number of bytes of one valid UTF-8 character at `at`, at most up to `end`; 0: not valid. */
size_t opscope__utf8_length(const uint8_t *at, const uint8_t *end);
/* True if all of it is valid UTF-8; otherwise `*bad` is the offset of the first byte that is not.
 */
bool opscope__utf8_check(const uint8_t *bytes, size_t size, size_t *bad);

/* Sets the error text "byte <offset>: ..."; returns a negative status. */
int opscope__document_fail(size_t offset, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int opscope__document_fail_va(size_t offset, const char *format, va_list arguments);
int opscope__document_no_memory(void);
/* The status of the failure that was reported last. */
int opscope__document_failed(void);

/* Foreign bytes for an error text: what is not printable ASCII is '?', long ones end with "...". */
struct opscope__printable {
    char text[84];
};
struct opscope__printable opscope__printable(const char *bytes, size_t size);

#endif
