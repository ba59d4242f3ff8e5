/* slot.h -- slots: the pointers in a library's memory through which it calls functions of others,
 * or its own exported ones. The loader sets each to the address of the symbol of that name.
 */
#ifndef OPSCOPE_BRIDGES_SLOT_H
#define OPSCOPE_BRIDGES_SLOT_H

#include <link.h>
#include <stdbool.h>

#include "bridges/pages.h"

typedef void (*opscope__slot_function)(void); /* of any signature */

/* Calls `visit` for each slot of the library that is readable and aligned, with its symbol's name,
 * until it returns false. ERR_UNSUPPORTED if the library's dynamic section is not as expected;
 * `visit` was not called then. No byte is read before the kernel has said that it is readable,
 * whatever the section contains. */
int opscope__slots_visit(const struct link_map *map, const struct opscope__pages *pages,
                         bool (*visit)(void *context, opscope__slot_function *slot,
                                       const char *name),
                         void *context);

/* Replaces the slot's value if it still is `expected`, atomically: a call meanwhile reaches one of
 * the two. `is_read_only`: its page is not writable, and is so only during the store. Callers take
 * turns. */
bool opscope__slot_replace(opscope__slot_function *slot, bool is_read_only,
                           opscope__slot_function expected, opscope__slot_function value);

#endif
