/* segment/names.c -- see segment/names.h. */
#include "segment/names.h"

#include <stdlib.h>
#include <string.h>

#include "opscope/record.h"
#include "opscope/status.h"
#include "segment/op_cost.h"

enum { VALUE_LIMIT = 128, OP_ID_LIMIT = 65536, LABEL_SET_LIMIT = 1024 };
/* Room beyond the limit for the label sets "other": one for each choice of keys. */
enum { KEPT_LABEL_SETS = 16 };

/* "key NUL value NUL" for each label, as in the dictionary. */
struct label_text {
    uint32_t bytes;
    char text[OPSCOPE__LABEL_KEY_LIMIT * (OPSCOPE__LABEL_KEY_BYTES + VALUE_LIMIT)];
};

/* The segment lock guards all of these. */
static uint8_t op_is_written[OP_ID_LIMIT + 1];
static struct label_text *label_sets[LABEL_SET_LIMIT + KEPT_LABEL_SETS]; /* by id, from 1 */
static uint32_t label_set_count;
static uint32_t
    other_label_set; /* for labels without room of their own; 0: none yet for these keys */
static char label_keys[OPSCOPE__LABEL_KEY_LIMIT][OPSCOPE__LABEL_KEY_BYTES];
static uint32_t label_key_count;

static bool is_plain(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

static int read_keys(const char *keys, char out[][OPSCOPE__LABEL_KEY_BYTES], uint32_t *out_count)
{
    uint32_t count = 0;
    for (const char *key = keys; key != NULL && *key != '\0';) {
        size_t bytes = strcspn(key, ",");
        if (bytes == 0 || bytes >= OPSCOPE__LABEL_KEY_BYTES || !is_plain(key, bytes) ||
            count == OPSCOPE__LABEL_KEY_LIMIT) {
            return OPSCOPE_ERR_INVALID;
        }
        memset(out[count], 0, sizeof out[count]);
        memcpy(out[count++], key, bytes);
        if (count == 2 && strcmp(out[0], out[1]) == 0) {
            return OPSCOPE_ERR_INVALID;
        }
        key += bytes + (key[bytes] == ',');
    }
    *out_count = count;
    return OPSCOPE_OK;
}

int opscope__label_keys_check(const char *keys)
{
    char unused[OPSCOPE__LABEL_KEY_LIMIT][OPSCOPE__LABEL_KEY_BYTES];
    uint32_t count;
    return read_keys(keys, unused, &count);
}

int opscope__names_set_label_keys(const char *keys)
{
    char read[OPSCOPE__LABEL_KEY_LIMIT][OPSCOPE__LABEL_KEY_BYTES] = {{0}};
    uint32_t count;
    int status = read_keys(keys, read, &count);
    if (status == OPSCOPE_OK) {
        memcpy(label_keys, read, sizeof label_keys);
        label_key_count = count;
        other_label_set = 0;
    }
    return status;
}

int opscope__names_start(const char *keys)
{
    int status = opscope__names_set_label_keys(keys);
    if (status != OPSCOPE_OK) {
        return status;
    }
    memset(op_is_written, 0, (size_t)opscope_op_count() + 1); /* touches no page beyond */
    for (uint32_t id = 1; id <= label_set_count; id++) {
        free(label_sets[id]);
    }
    label_set_count = 0;
    return OPSCOPE_OK;
}

bool opscope__names_add_op(opscope__segment *segment, uint32_t op_id)
{
    const opscope_op *op = op_id <= OP_ID_LIMIT ? opscope_op_by_id(op_id) : NULL;
    char text[2 * VALUE_LIMIT];
    if (op == NULL) {
        return false;
    }
    if (op_is_written[op_id]) {
        return true;
    }
    size_t name_bytes = strnlen(op->name, VALUE_LIMIT - 1);
    size_t overload_bytes = strnlen(op->overload_name, VALUE_LIMIT - 1);
    memcpy(text, op->name, name_bytes);
    text[name_bytes] = '\0';
    memcpy(text + name_bytes + 1, op->overload_name, overload_bytes);
    text[name_bytes + 1 + overload_bytes] = '\0';
    const opscope_entry entry = {.kind = OPSCOPE_ENTRY_OP,
                                 .detail = op->scope,
                                 .id = op_id,
                                 .bytes = (uint32_t)(name_bytes + overload_bytes + 2),
                                 .extra_cost_ps = opscope__op_cost_settle(op_id)};
    op_is_written[op_id] = opscope__segment_add_entry(segment, &entry, text);
    return op_is_written[op_id];
}

static void append(struct label_text *into, const char *text, size_t limit)
{
    size_t bytes = strnlen(text, limit - 1);
    memcpy(into->text + into->bytes, text, bytes);
    into->text[into->bytes + bytes] = '\0';
    into->bytes += (uint32_t)bytes + 1;
}

/* Finds or adds the set of these labels among the first `limit` sets and returns its id; 0 if there
 * is no room for one more. */
static uint32_t find_or_add(opscope__segment *segment, const struct label_text *labels,
                            uint32_t limit)
{
    for (uint32_t id = 1; id <= label_set_count; id++) {
        if (label_sets[id]->bytes == labels->bytes &&
            memcmp(label_sets[id]->text, labels->text, labels->bytes) == 0) {
            return id;
        }
    }
    uint32_t id = label_set_count + 1;
    struct label_text *copy = id < limit ? malloc(sizeof *copy) : NULL;
    const opscope_entry entry = {.kind = OPSCOPE_ENTRY_LABELS, .id = id, .bytes = labels->bytes};
    if (copy == NULL || !opscope__segment_add_entry(segment, &entry, labels->text)) {
        free(copy);
        return 0;
    }
    *copy = *labels;
    label_sets[id] = copy;
    label_set_count = id;
    return id;
}

/* Adds the set "other" before the first set, so that it exists when room runs out. */
static void add_other(opscope__segment *segment)
{
    struct label_text other = {.bytes = 0};
    for (uint32_t i = 0; i < label_key_count; i++) {
        append(&other, label_keys[i], OPSCOPE__LABEL_KEY_BYTES);
        append(&other, "other", VALUE_LIMIT);
    }
    other_label_set = find_or_add(segment, &other, LABEL_SET_LIMIT + KEPT_LABEL_SETS);
}

uint32_t opscope__names_label_set(opscope__segment *segment, const opscope_debug_info *chain)
{
    struct label_text labels = {.bytes = 0};
    for (uint32_t i = 0; i < label_key_count; i++) {
        const opscope_debug_info *link = chain;
        while (link != NULL && strcmp(link->key, label_keys[i]) != 0) {
            link = link->parent;
        }
        if (link != NULL && link->value != NULL) {
            append(&labels, link->key, OPSCOPE__LABEL_KEY_BYTES);
            append(&labels, link->value, VALUE_LIMIT);
        }
    }
    if (labels.bytes == 0) {
        return 0;
    }
    if (other_label_set == 0) {
        add_other(segment);
    }
    uint32_t id = find_or_add(segment, &labels, LABEL_SET_LIMIT);
    return id != 0 ? id : other_label_set;
}
