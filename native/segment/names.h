/* segment/names.h -- the operators and label sets that the segment's dictionary already has.
 *
 * Cells hold ids; the dictionary maps them to texts. Call everything with the segment lock held,
 * except opscope__names_label_set for a chain whose label set is already known.
 */
#ifndef OPSCOPE_SEGMENT_NAMES_H
#define OPSCOPE_SEGMENT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "opscope/debug_info.h"
#include "segment/segment.h"

enum { OPSCOPE__LABEL_KEY_LIMIT = 2, OPSCOPE__LABEL_KEY_BYTES = 64 };

/* Checks label keys: at most two, separated by commas, different from each other, without control
 * characters. */
int opscope__label_keys_check(const char *label_keys);
/* Forgets everything, for a new segment. */
int opscope__names_start(const char *label_keys);
/* Sets other keys; existing ids keep their meaning. */
int opscope__names_set_label_keys(const char *label_keys);
/* Adds the operator to the dictionary if it is missing; false if there is no room. */
bool opscope__names_add_op(opscope__segment *segment, uint32_t op_id);
/* The id of the labels that `chain` (not NULL) has for the label keys; 0 if it has none. If there
 * is no room, the set whose values are all "other". */
uint32_t opscope__names_label_set(opscope__segment *segment, const opscope_debug_info *chain);

#endif
