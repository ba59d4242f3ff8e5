/* tensor/ops/reduce/leave_one_out.h -- repeats each row of n elements n times, each time without
 * one element. This gives products without one or two elements when zeros rule out a division; it
 * takes the square of the memory. */
#ifndef OPSCOPE_TENSOR_OPS_REDUCE_LEAVE_ONE_OUT_H
#define OPSCOPE_TENSOR_OPS_REDUCE_LEAVE_ONE_OUT_H

#include "tensor/core/tensor.h"
#include "tensor/dispatch/formula.h"

struct opscope__leave_one_out {
    int dims;
    int64_t order[OPSCOPE_DIM_LIMIT],
        back[OPSCOPE_DIM_LIMIT];      /* puts the row's dimensions last, and the inverse */
    int64_t sizes[OPSCOPE_DIM_LIMIT]; /* in that order */
    int64_t rows, width;
    opscope_tensor *diagonal; /* bools [width, width] */
};

/* True if an element of `self` is zero. */
static inline bool opscope__has_zero(struct opscope__formula *f, opscope_tensor *self)
{
    opscope_tensor *zeros = opscope__f(f, "eq", opscope__T(self), opscope__I(0));
    const opscope_tensor *any = opscope__f1(f, "any", zeros);
    return any != NULL && *(const bool *)any->data;
}

/* Rows of `like` run along the dimensions in `set`. */
static inline void opscope__leave_one_out_start(struct opscope__formula *f,
                                                const opscope_tensor *like, uint32_t set,
                                                struct opscope__leave_one_out *out)
{
    *out = (struct opscope__leave_one_out){.rows = 1, .width = 1};
    for (int folded = 0; folded < 2; folded++) {
        for (int i = 0; i < like->dims; i++) {
            if ((int)(set >> i & 1) == folded) {
                int64_t size = opscope__sizes(like)[i];
                *(folded ? &out->width : &out->rows) *= size;
                out->sizes[out->dims] = size;
                out->back[i] = out->dims;
                out->order[out->dims++] = i;
            }
        }
    }
    out->diagonal =
        opscope__f(f, "eye", opscope__I(out->width), opscope__N, opscope__I(OPSCOPE_BOOL));
}

/* A tensor of the sizes of `like` as [rows, width, width]: each row, repeated `width` times. */
static inline opscope_tensor *opscope__leave_one_out_rows(
    struct opscope__formula *f, const struct opscope__leave_one_out *apart, opscope_tensor *tensor)
{
    const int64_t once[] = {apart->rows, 1, apart->width},
                  square[] = {apart->rows, apart->width, apart->width};
    tensor = opscope__f(f, "permute", opscope__T(tensor), opscope__L(apart->order, apart->dims));
    tensor = opscope__f(f, "reshape", opscope__T(tensor), opscope__L(once, 3));
    return opscope__f(f, "expand", opscope__T(tensor), opscope__L(square, 3));
}

/* Such rows with `value` in place of element i in repetition i. */
static inline opscope_tensor *opscope__leave_one_out_without(
    struct opscope__formula *f, const struct opscope__leave_one_out *apart, opscope_tensor *rows,
    int64_t value)
{
    return opscope__f(f, "masked_fill", opscope__T(rows), opscope__T(apart->diagonal),
                      opscope__I(value));
}

/* The sums of a * b over each repetition, in the sizes of `like`. */
static inline opscope_tensor *opscope__leave_one_out_sum(struct opscope__formula *f,
                                                         const struct opscope__leave_one_out *apart,
                                                         opscope_tensor *a, opscope_tensor *b)
{
    opscope_tensor *sum = opscope__f(f, "sum", opscope__T(opscope__f2(f, "mul", a, b)),
                                     opscope__L(&(const int64_t){-1}, 1));
    sum = opscope__f(f, "reshape", opscope__T(sum), opscope__L(apart->sizes, apart->dims));
    return opscope__f(f, "permute", opscope__T(sum), opscope__L(apart->back, apart->dims));
}

#endif
