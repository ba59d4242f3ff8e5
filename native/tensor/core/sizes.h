/* tensor/shape.h -- arithmetic on sizes and strides: broadcasting, dimensions from the end, views.
 *
 * Nothing here allocates or looks at data. Errors name the operator given as `name`.
 */
#ifndef OPSCOPE_TENSOR_SHAPE_H
#define OPSCOPE_TENSOR_SHAPE_H

#include "opscope/tensor.h"

/* The lowest and highest element, relative to the first, that sizes and strides reach. */
struct opscope__extent {
    int64_t first, last;
};

/* "[3, 4]", for messages. */
struct opscope__sizes_text {
    char text[160];
};

/* Elements; OPSCOPE__COUNT_BEYOND where they are more than can be counted, which no tensor has. */
#define OPSCOPE__COUNT_BEYOND INT64_MAX
/* Strides are no larger, so that they can be told in bytes. */
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
struct opscope__sizes_text opscope__shape_text(const opscope_tensor *tensor);

int opscope__extent_of(int dims, const int64_t *sizes, const int64_t *strides,
                       struct opscope__extent *out);
/* Of `into` and `sizes` together; *into_dims and into are both read and written. */
int opscope__broadcast(const char *name, int *into_dims, int64_t *into, int dims,
                       const int64_t *sizes);
/* Dimension `dim`, counted from the end where negative, of `dims` (a scalar counts as one). */
int opscope__wrap_dim(const char *name, int64_t dim, int dims, int *out);
/* The set of dimensions in a list (count 0 or NULL: all), one bit each. */
int opscope__dim_set(const char *name, const int64_t *list, size_t count, int dims, uint32_t *out);
/* Sizes with at most one -1 filled in so that they hold `count` elements. */
int opscope__infer_sizes(const char *name, int64_t count, int dims, const int64_t *sizes,
                         int64_t *out);
/* Strides that make `tensor` look like sizes without a copy; false where there are none. */
bool opscope__view_strides(const opscope_tensor *tensor, int dims, const int64_t *sizes,
                           int64_t *out);
bool opscope__same_sizes(const opscope_tensor *a, const opscope_tensor *b);
/* Whether two elements of the tensor may share memory, as in an expanded view. */
bool opscope__overlaps_itself(const opscope_tensor *tensor);

#endif
