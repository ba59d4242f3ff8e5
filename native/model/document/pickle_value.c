/* model/document/pickle_value.c -- numbers, texts and bytes that stand in a pickle. */
#include "model/document/pickle_machine.h"

#include <string.h>

static bool push_int(struct opscope__machine *machine, int64_t value)
{
    struct opscope__item *item =
        opscope__item_new(machine->document, OPSCOPE__ITEM_INT, machine->opcode_offset);
    if (item != NULL) {
        item->as.integer = value;
    }
    return opscope__machine_push(machine, item);
}

bool opscope__machine_int(struct opscope__machine *machine, size_t bytes)
{
    uint32_t number;
    /* Of four bytes it has a sign, of fewer none. */
    return opscope__machine_take_number(machine, bytes, &number) &&
           push_int(machine, bytes == 4 && number > INT32_MAX ? (int64_t)number - (INT64_C(1) << 32)
                                                              : (int64_t)number);
}

bool opscope__machine_long(struct opscope__machine *machine)
{
    uint32_t bytes;
    if (!opscope__machine_take_number(machine, 1, &bytes)) {
        return false;
    }
    const uint8_t *taken = opscope__machine_take(machine, bytes);
    if (taken == NULL) {
        return false;
    }
    /* Two's complement, little-endian, as long as it wants: bytes above the eighth only repeat the
     * sign of one that fits. */
    uint8_t sign = bytes > 0 && taken[bytes - 1] >= 0x80 ? 0xFF : 0;
    uint64_t value = 0;
    for (uint32_t i = 0; i < 8; i++) {
        value |= (uint64_t)(i < bytes ? taken[i] : sign) << (8 * i);
    }
    for (uint32_t i = 8; i < bytes; i++) {
        if (taken[i] != sign) {
            return opscope__machine_fail(machine, "an integer of %u bytes, more than 64 bits",
                                         bytes);
        }
    }
    if (value >> 63 != (sign != 0)) {
        return opscope__machine_fail(machine, "an integer of more than 64 bits");
    }
    int64_t integer;
    memcpy(&integer, &value, sizeof integer);
    return push_int(machine, integer);
}

bool opscope__machine_float(struct opscope__machine *machine)
{
    const uint8_t *taken = opscope__machine_take(machine, 8);
    if (taken == NULL) {
        return false;
    }
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        bits = bits << 8 | taken[i];
    }
    struct opscope__item *item =
        opscope__item_new(machine->document, OPSCOPE__ITEM_FLOAT, machine->opcode_offset);
    if (item != NULL) {
        memcpy(&item->as.real, &bits, sizeof bits);
    }
    return opscope__machine_push(machine, item);
}

bool opscope__machine_text(struct opscope__machine *machine, enum opscope__item_kind kind,
                           size_t length_bytes)
{
    uint32_t bytes;
    if (!opscope__machine_take_number(machine, length_bytes, &bytes)) {
        return false;
    }
    const uint8_t *taken = opscope__machine_take(machine, bytes);
    if (taken == NULL) {
        return false;
    }
    size_t bad;
    if (kind == OPSCOPE__ITEM_TEXT && !opscope__utf8_check(taken, bytes, &bad)) {
        opscope__document_fail((size_t)(taken - machine->start) + bad, "a text is not UTF-8");
        return false;
    }
    return opscope__machine_push(
        machine, opscope__item_new_text(machine->document, kind, (const char *)taken, bytes,
                                        machine->opcode_offset));
}
