/* model/document/pickle_operand.c -- the bytes behind an opcode, and failures of an opcode. */
#include "model/document/pickle_machine.h"

bool opscope__machine_fail(const struct opscope__machine *machine, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    opscope__document_fail_va(machine->opcode_offset, format, arguments);
    va_end(arguments);
    return false;
}

const uint8_t *opscope__machine_take(struct opscope__machine *machine, size_t bytes)
{
    size_t left = (size_t)(machine->end - machine->at);
    if (left < bytes) {
        opscope__machine_fail(machine, "the opcode has an operand of %zu bytes, and %zu are left",
                              bytes, left);
        return NULL;
    }
    const uint8_t *taken = machine->at;
    machine->at += bytes;
    return taken;
}

bool opscope__machine_take_number(struct opscope__machine *machine, size_t bytes, uint32_t *out)
{
    const uint8_t *taken = opscope__machine_take(machine, bytes);
    if (taken == NULL) {
        return false;
    }
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; i++) {
        number |= (uint32_t)taken[i] << (8 * i);
    }
    *out = number;
    return true;
}
