/* tensor/core/sizes.h -- arithmetic on sizes and strides: broadcasting, dimensions counted from the
 * end.
 *
 * Nothing here allocates or reads data. Errors name the operator `name`.
 */
#ifndef OPSCOPE_TENSOR_CORE_SIZES_H
#define OPSCOPE_TENSOR_CORE_SIZES_H

#include "opscope/tensor.h"

/* The lowest and highest element that sizes and strides reach, relative to the first. */
struct opscope__extent {
    int64_t first, last;
};

/* "[3, 4]", for messages. */
struct opscope__sizes_text {
    char text[160];
};

/* The number of elements; OPSCOPE__COUNT_BEYOND if it cannot be represented, which no tensor
 * has. */
#define OPSCOPE__COUNT_BEYOND INT64_MAX
/* The limit of strides, so that they can be expressed in bytes. */
#define OPSCOPE__STRIDE_LIMIT (INT64_MAX / 64)

static inline int64_t opscope__count_of(int dims, const int64_t *sizes)
{
    int64_t count = 1;
    bool is_beyond = false, is_empty = false;
    for (int i = 0; i < dims; i++) {
        is_beyond |= __builtin_mul_overflow(count, sizes[i], &count);
        is_empty |= sizes[i] == 0;
    }
    return __builtin_expect(is_beyond, 0) ? (is_empty ? 0 : OPSCOPE__COUNT_BEYOND) : count;
}

struct opscope__sizes_text opscope__sizes_text(int dims, const int64_t *sizes);

int opscope__extent_of(int dims, const int64_t *sizes, const int64_t *strides,
                       struct opscope__extent *out);
/* Broadcasts `into` with `sizes`; updates *into_dims and into. */
int opscope__broadcast(const char *name, int *into_dims, int64_t *into, int dims,
                       const int64_t *sizes);
/* Dimension `dim` of `dims`, from the end if negative (a scalar counts as one dimension). */
int opscope__wrap_dim(const char *name, int64_t dim, int dims, int *out);
/* The dimensions in a list (count 0 or NULL: all) as a set, one bit each. */
int opscope__dim_set(const char *name, const int64_t *list, size_t count, int dims, uint32_t *out);
/* Replaces a -1 in sizes, at most one, so that they hold `count` elements. */
int opscope__infer_sizes(const char *name, int64_t count, int dims, const int64_t *sizes,
                         int64_t *out);

#endif
