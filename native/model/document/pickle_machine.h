/* model/document/pickle_machine.h -- the state of the pickle machine, and its parts.
 *
 * A pickle is a program for a stack machine: opcodes push items, collect those above a mark into a
 * container, and keep items under numbers (the memo) to push them again. Functions that return bool
 * return false after a failure that they have reported.
 */
#ifndef OPSCOPE_MODEL_PICKLE_MACHINE_H
#define OPSCOPE_MODEL_PICKLE_MACHINE_H

#include "model/document/build.h"
#include "model/document/stack.h"

struct opscope__pickle_globals;

struct opscope__machine {
    struct opscope__document *document;
    const struct opscope__pickle_globals *globals;
    const uint8_t *start;
    const uint8_t *at; /* behind the opcode and what was read of its operand */
    const uint8_t *end;
    size_t opcode_offset;
    struct opscope__stack stack;
    struct opscope__stack memo; /* `count` entries, NULL where nothing was kept */
    size_t *marks;              /* how many items lie below each mark */
    size_t mark_count;
    size_t mark_room;
    struct opscope__item *set; /* the GLOBAL builtins.set, once it is used */
};

/* ---- operands, failures -----------------------------------------------------------------------  */

/* Reports a failure at the opcode; returns false. */
bool opscope__machine_fail(const struct opscope__machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The next bytes; NULL: the pickle ends before. */
const uint8_t *opscope__machine_take(struct opscope__machine *machine, size_t bytes);
/* An unsigned number of 1, 2 or 4 bytes, little-endian. */
bool opscope__machine_take_number(struct opscope__machine *machine, size_t bytes, uint32_t *out);

/* ---- stack, marks, memo ---------------------------------------------------------------------- */

/* False for NULL too, so that what makes an item can stand in the call. */
bool opscope__machine_push(struct opscope__machine *machine, struct opscope__item *item);
/* The top item, taken off or not; NULL: nothing lies above the last mark. */
struct opscope__item *opscope__machine_pop(struct opscope__machine *machine);
struct opscope__item *opscope__machine_top(const struct opscope__machine *machine);
/* Pops this many items, which stay readable until the next push; NULL: there are fewer. */
struct opscope__item *const *opscope__machine_pop_many(struct opscope__machine *machine,
                                                       size_t count);
bool opscope__machine_mark(struct opscope__machine *machine);
/* Removes the last mark and what lies above it; the items stay readable until the next push. */
bool opscope__machine_pop_mark(struct opscope__machine *machine,
                               struct opscope__item *const **items, size_t *count);
bool opscope__machine_put(struct opscope__machine *machine, size_t number_bytes);
bool opscope__machine_get(struct opscope__machine *machine, size_t number_bytes);

/* ---- values that stand in the pickle --------------------------------------------------------- */

bool opscope__machine_int(struct opscope__machine *machine, size_t bytes);
bool opscope__machine_long(struct opscope__machine *machine);
bool opscope__machine_float(struct opscope__machine *machine);
/* The operand: a length in `length_bytes` bytes, then the bytes. */
bool opscope__machine_text(struct opscope__machine *machine, enum opscope__item_kind kind,
                           size_t length_bytes);

/* ---- containers and objects ------------------------------------------------------------------ */

bool opscope__machine_tuple(struct opscope__machine *machine, size_t count);
bool opscope__machine_tuple_from_mark(struct opscope__machine *machine);
bool opscope__machine_append(struct opscope__machine *machine);
bool opscope__machine_appends(struct opscope__machine *machine);
bool opscope__machine_set_item(struct opscope__machine *machine);
bool opscope__machine_set_items(struct opscope__machine *machine);
bool opscope__machine_global(struct opscope__machine *machine);
bool opscope__machine_empty_set(struct opscope__machine *machine);
bool opscope__machine_call(struct opscope__machine *machine);
bool opscope__machine_build(struct opscope__machine *machine);
bool opscope__machine_persistent(struct opscope__machine *machine);

#endif
