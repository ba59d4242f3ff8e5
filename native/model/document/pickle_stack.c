/* model/document/pickle_stack.c -- the pickle machine's stack, marks and memo. */
#include "model/document/pickle_machine.h"

#include <stdlib.h>

/* Items above the last mark. */
static size_t available(const struct opscope__machine *machine)
{
    size_t below = machine->mark_count > 0 ? machine->marks[machine->mark_count - 1] : 0;
    return machine->stack.count - below;
}

bool opscope__machine_push(struct opscope__machine *machine, struct opscope__item *item)
{
    return item != NULL && opscope__stack_push(&machine->stack, item);
}

struct opscope__item *const *opscope__machine_pop_many(struct opscope__machine *machine,
                                                       size_t count)
{
    if (available(machine) < count) {
        opscope__machine_fail(machine, "the opcode takes %zu items, and the stack has %zu", count,
                              available(machine));
        return NULL;
    }
    machine->stack.count -= count;
    return machine->stack.items + machine->stack.count;
}

struct opscope__item *opscope__machine_pop(struct opscope__machine *machine)
{
    struct opscope__item *const *popped = opscope__machine_pop_many(machine, 1);
    return popped != NULL ? popped[0] : NULL;
}

struct opscope__item *opscope__machine_top(const struct opscope__machine *machine)
{
    if (available(machine) == 0) {
        opscope__machine_fail(machine, "the opcode takes an item, and the stack is empty");
        return NULL;
    }
    return machine->stack.items[machine->stack.count - 1];
}

bool opscope__machine_mark(struct opscope__machine *machine)
{
    if (machine->mark_count == machine->mark_room) {
        size_t room = machine->mark_room == 0 ? 64 : machine->mark_room * 2;
        size_t *marks = realloc(machine->marks, room * sizeof *marks);
        if (marks == NULL) {
            opscope__document_no_memory();
            return false;
        }
        machine->marks = marks;
        machine->mark_room = room;
    }
    machine->marks[machine->mark_count++] = machine->stack.count;
    return true;
}

bool opscope__machine_pop_mark(struct opscope__machine *machine,
                               struct opscope__item *const **items, size_t *count)
{
    if (machine->mark_count == 0) {
        return opscope__machine_fail(machine, "the opcode takes a mark, and there is none");
    }
    *count = available(machine);
    machine->stack.count -= *count;
    *items = *count > 0 ? machine->stack.items + machine->stack.count : NULL;
    machine->mark_count--;
    return true;
}

/* ---- the memo -------------------------------------------------------------------------------- */

bool opscope__machine_put(struct opscope__machine *machine, size_t number_bytes)
{
    uint32_t number;
    struct opscope__item *item = opscope__machine_top(machine);
    if (item == NULL || !opscope__machine_take_number(machine, number_bytes, &number)) {
        return false;
    }
    /* Picklers count from 0 or 1. A number beyond the bytes read so far would only cost memory. */
    if (number > machine->opcode_offset) {
        return opscope__machine_fail(machine, "memo number %u is out of all proportion", number);
    }
    while (machine->memo.count <= number) {
        if (!opscope__stack_push(&machine->memo, NULL)) {
            return false;
        }
    }
    machine->memo.items[number] = item;
    return true;
}

bool opscope__machine_get(struct opscope__machine *machine, size_t number_bytes)
{
    uint32_t number;
    if (!opscope__machine_take_number(machine, number_bytes, &number)) {
        return false;
    }
    if (number >= machine->memo.count || machine->memo.items[number] == NULL) {
        return opscope__machine_fail(machine, "nothing is in the memo under %u", number);
    }
    return opscope__machine_push(machine, machine->memo.items[number]);
}
