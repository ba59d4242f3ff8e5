/* record/shape.h -- the shapes of what ranges take and give: of the values whose kind somebody
 * above knows how to read. */
#ifndef OPSCOPE_RECORD_SHAPE_H
#define OPSCOPE_RECORD_SHAPE_H

#include <stdint.h>

#include "opscope/record.h"

enum { OPSCOPE__RANK_LIMIT = 16 };

/* The rank of the array, its sizes in *sizes (the first OPSCOPE__RANK_LIMIT of them); -1 where it
 * has none, or none that is known. Called within a callback, with no lock held. */
typedef int opscope__shape_reader(const void *object, int64_t *sizes);

/* Values of that type (opscope_value.type; a literal) are read by `reader`, for good. ERR_FULL
 * beyond 8 types; a type that is known keeps its reader. */
OPSCOPE_API int opscope__shape_register(const char *type, opscope__shape_reader *reader);
/* The rank, at most OPSCOPE__RANK_LIMIT; -1 for what is no array. */
int opscope__shape_read(const opscope_value *value, int64_t *sizes);

#endif
