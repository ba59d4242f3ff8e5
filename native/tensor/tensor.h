/* tensor/tensor.h -- what a tensor is, for the tensor core itself. */
#ifndef OPSCOPE_TENSOR_TENSOR_H
#define OPSCOPE_TENSOR_TENSOR_H

#include "opscope/tensor.h"
#include "tensor/storage.h"

struct opscope__grad; /* autograd/tape.h */

struct opscope_tensor {
    uint32_t reference_count; /* atomic, as that of a storage */
    uint8_t dtype;            /* opscope_dtype */
    uint8_t dims;
    bool is_contiguous;
    bool is_view;               /* an operator made it as a view of another tensor */
    int64_t count;              /* elements */
    opscope_storage *storage;   /* NULL: sizes and dtype only, kept for backward */
    char *data;                 /* of the first element */
    struct opscope__grad *grad; /* NULL: no grad wanted, none there */
    void *wrapper;   /* a language binding's object for this tensor; the binding's alone */
    int64_t shape[]; /* sizes, then strides in elements */
};

#define opscope__sizes(tensor) ((tensor)->shape)
#define opscope__strides(tensor) ((tensor)->shape + (tensor)->dims)

/* As the public ones, unchecked: `data` lies in `storage`, which is retained; strides NULL:
 * contiguous. */
int opscope__tensor_over(opscope_storage *storage, char *data, opscope_dtype dtype, int dims,
                         const int64_t *sizes, const int64_t *strides, opscope_tensor **out);
/* A view of `base` with other sizes and strides, its first element `shift` elements further. */
int opscope__tensor_view(const opscope_tensor *base, int dims, const int64_t *sizes,
                         const int64_t *strides, int64_t shift, opscope_tensor **out);
/* Same storage, sizes and strides, nothing of autograd. */
int opscope__tensor_alias(const opscope_tensor *base, opscope_tensor **out);
/* Sizes and dtype, no storage. */
int opscope__tensor_outline(const opscope_tensor *base, opscope_tensor **out);
int opscope__tensor_empty(int dims, const int64_t *sizes, opscope_dtype dtype,
                          opscope_tensor **out);
/* Whether a tensor may be written in place at all: not read-only memory, nor one place for two
 * elements. inplace.c. */
int opscope__check_written(const char *name, const opscope_tensor *target);
/* Notes a write in place. */
void opscope__tensor_written(const opscope_tensor *tensor);

void opscope__grad_destroy(struct opscope__grad *grad);

/* shape_of.c: from now on a trace may ask for the shapes of tensors. */
void opscope__shapes_start(void);

#endif
