/* record/names.h -- which operators and label sets the segment's dictionary already has.
 *
 * Cells hold ids; the dictionary says what they mean. Everything is called with the segment lock
 * held, but for the label set of a chain that was looked up before.
 */
#ifndef OPSCOPE_RECORD_NAMES_H
#define OPSCOPE_RECORD_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/debug_info.h"
#include "record/segment.h"

enum { OPSCOPE__LABEL_KEY_LIMIT = 2, OPSCOPE__LABEL_KEY_BYTES = 64 };

/* Whether these can be label keys: at most two, by commas, no two the same, no control characters.
 */
int opscope__label_keys_check(const char *label_keys);
/* Forgets all: the segment is new. */
int opscope__names_start(const char *label_keys);
/* Other keys from now on; ids given out keep their meaning. */
int opscope__names_set_label_keys(const char *label_keys);
/* Sees to it that the operator is in the dictionary; false where there is no room. */
bool opscope__names_add_op(opscope__segment *segment, uint32_t op_id);
/* The id of the labels that `chain` (not NULL) holds for the label keys; 0 where it holds none.
 * Where there is no room, the set whose values are all "other". */
uint32_t opscope__names_label_set(opscope__segment *segment, const opscope_debug_info *chain);

#endif
