/* model/program/kinds/index.h -- indices and slices, as Python counts them. */
#ifndef OPSCOPE_MODEL_PROGRAM_INDEX_H
#define OPSCOPE_MODEL_PROGRAM_INDEX_H

#include "model/program/value.h"

struct opscope__slice {
    size_t first;
    int64_t step;
    size_t count;
};

/* The place of an item; a negative index counts from the end. `of`: "a list", for the failure. */
int opscope__index_of(int64_t index, size_t count, const char *of, size_t *out);
/* What `part` = {start or None, end or None, step} selects of `count` items. */
int opscope__slice_of(const struct opscope__value *part, size_t count, struct opscope__slice *out);

static inline size_t opscope__slice_at(const struct opscope__slice *slice, size_t index)
{
    return (size_t)((int64_t)slice->first + (int64_t)index * slice->step);
}

#endif
