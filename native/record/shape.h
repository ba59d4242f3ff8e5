/* record/shape.h -- the shapes of a range's inputs and outputs, read by functions that the layers
 * above register for each type of value. */
#ifndef OPSCOPE_RECORD_SHAPE_H
#define OPSCOPE_RECORD_SHAPE_H

#include <stdint.h>

#include "opscope/record.h"

enum { OPSCOPE__RANK_LIMIT = 16 };

/* Returns the rank of the array and its sizes in *sizes (at most the first OPSCOPE__RANK_LIMIT); -1
 * if it has no rank or an unknown one. Called within a callback, without locks. */
typedef int opscope__shape_reader(const void *object, int64_t *sizes);

/* Registers `reader` for values of that type (opscope_value.type; a literal), permanently. ERR_FULL
 * beyond 8 types; a known type keeps its reader. */
OPSCOPE_API int opscope__shape_register(const char *type, opscope__shape_reader *reader);
/* The rank, at most OPSCOPE__RANK_LIMIT; -1 for a value that is not an array. */
int opscope__shape_read(const opscope_value *value, int64_t *sizes);

#endif
