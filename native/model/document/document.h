/* model/document/document.h -- foreign bytes as a tree of items in memory.
 *
 * JSON text (json.h) and pickles (pickle.h) become the same kind of tree. Reading runs nothing and
 * imports nothing: what a pickle calls stays in the tree as an item that names the function and its
 * arguments.
 *
 * A document owns all memory of its items; they live until its release and never change. Any number
 * of threads may read one document. A pickle may refer to an item several times: such an item has
 * several parents. No item contains itself, and a walk that follows every reference, a shared item
 * once for each of its parents, visits at most OPSCOPE__EXPANDED_LIMIT items, and texts of at most
 * 64 times as many bytes.
 *
 * Not here: what the items mean to a model.
 */
#ifndef OPSCOPE_MODEL_DOCUMENT_H
#define OPSCOPE_MODEL_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/export.h"

enum {
    OPSCOPE__INPUT_BYTES_LIMIT = 1 << 30,
    OPSCOPE__ITEM_LIMIT = 1 << 23,
    OPSCOPE__EXPANDED_LIMIT = 1 << 24,
    OPSCOPE__DEPTH_LIMIT = 200,
    /* Of a TEXT that is a key: comparing shared long ones would take for ever. */
    OPSCOPE__KEY_BYTES_LIMIT = 4096,
    /* So many bytes of a text count as one item more in `expanded`. */
    OPSCOPE__EXPANDED_TEXT_BYTES = 64,
    /* A document holds at most this much memory for each byte of input, and as much again while it
     * is read. */
    OPSCOPE__BYTES_FOR_BYTE = 96
};

enum opscope__item_kind {
    OPSCOPE__ITEM_NONE, /* JSON null */
    OPSCOPE__ITEM_BOOL,
    OPSCOPE__ITEM_INT,
    OPSCOPE__ITEM_FLOAT,
    OPSCOPE__ITEM_TEXT, /* valid UTF-8 */
    OPSCOPE__ITEM_BYTES,
    OPSCOPE__ITEM_LIST,
    OPSCOPE__ITEM_TUPLE,
    OPSCOPE__ITEM_MAP,    /* in the order of the input; no NONE, BOOL, INT or TEXT is a key twice */
    OPSCOPE__ITEM_GLOBAL, /* "module.name" */
    OPSCOPE__ITEM_CALL,   /* an object: a GLOBAL called with arguments */
    OPSCOPE__ITEM_PERSISTENT /* an object outside the pickle, by its id: of torch.save a storage */
};

struct opscope__pair {
    struct opscope__item *key;
    struct opscope__item *value;
};

struct opscope__object {
    struct opscope__item *function;  /* a GLOBAL */
    struct opscope__item *arguments; /* a TUPLE; of an enum in TorchScript its value */
    struct opscope__item *state;     /* what BUILD gives it; NULL: nothing */
    struct opscope__pair *pairs;     /* of collections.OrderedDict and the like; as of a MAP */
};

struct opscope__item {
    uint16_t kind;     /* enum opscope__item_kind */
    uint16_t depth;    /* levels of items, this one included */
    uint32_t offset;   /* where it begins in the input; of a pickle its opcode, 0 for constants */
    uint32_t count;    /* bytes of a text; items; pairs of a MAP or CALL; else 0 */
    uint32_t expanded; /* items that a walk from here visits, this one included; texts weigh more */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text; /* TEXT, BYTES, GLOBAL: `count` bytes and a NUL; may contain others */
        struct opscope__item **items; /* LIST, TUPLE */
        struct opscope__pair *pairs;  /* MAP */
        struct opscope__object *object;
        struct opscope__item *id; /* PERSISTENT */
    } as;
};

struct opscope__document;

OPSCOPE_API const struct opscope__item *opscope__document_root(
    const struct opscope__document *document);
/* How many bytes of the input were read. A pickle ends at its STOP; JSON reads all. */
OPSCOPE_API size_t opscope__document_end(const struct opscope__document *document);
/* Memory that it holds. */
OPSCOPE_API size_t opscope__document_bytes(const struct opscope__document *document);
OPSCOPE_API void opscope__document_release(
    struct opscope__document *document); /* NULL is allowed */

/* The pairs of a MAP or CALL, `item->count` of them; NULL: another kind, or none. */
OPSCOPE_API const struct opscope__pair *opscope__item_pairs(const struct opscope__item *item);
/* The value of a TEXT key of a MAP or CALL, in logarithmic time; NULL: another kind of item, or no
 * such key. */
OPSCOPE_API const struct opscope__item *opscope__item_find(const struct opscope__item *item,
                                                           const char *key);
/* "text", "list", ...: for messages. */
OPSCOPE_API const char *opscope__item_kind_name(const struct opscope__item *item);
/* True for the GLOBAL of that "module.name", and for a CALL of it. */
OPSCOPE_API bool opscope__item_is_global(const struct opscope__item *item, const char *name);

#endif
