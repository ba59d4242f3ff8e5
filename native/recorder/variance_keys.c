/* recorder/variance_keys.c -- see recorder/variance_keys.h. */
#include "recorder/variance_keys.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 256 };

void opscope__known_forget(opscope__known_keys *keys)
{
    if (keys->slots != NULL) {
        memset(keys->slots, 0, keys->slot_count * sizeof *keys->slots);
    }
    keys->used_count = 0;
}

struct opscope__known *opscope__known_find(const opscope__known_keys *keys, uint64_t key)
{
    size_t at = (size_t)(key * 0x9e3779b97f4a7c15u >> 20) & (keys->slot_count - 1);
    while (keys->slots[at].key != key && keys->slots[at].key != 0) {
        at = (at + 1) & (keys->slot_count - 1);
    }
    return &keys->slots[at];
}

static bool grow(opscope__known_keys *keys)
{
    opscope__known_keys more = {
        .slot_count = keys->slot_count != 0 ? 2 * keys->slot_count : FIRST_SLOTS,
        .used_count = keys->used_count};
    more.slots = calloc(more.slot_count, sizeof *more.slots);
    if (more.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < keys->slot_count; i++) {
        if (keys->slots[i].key != 0) {
            *opscope__known_find(&more, keys->slots[i].key) = keys->slots[i];
        }
    }
    free(keys->slots);
    *keys = more;
    return true;
}

struct opscope__known *opscope__known_of(opscope__known_keys *keys, uint64_t key)
{
    if (2 * keys->used_count >= keys->slot_count && !grow(keys)) {
        return NULL;
    }
    struct opscope__known *known = opscope__known_find(keys, key);
    if (known->key == 0) {
        *known = (struct opscope__known){.key = key, .is_outer = true};
        keys->used_count++;
    }
    return known;
}
