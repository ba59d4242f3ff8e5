/* tensor/core/tensor.h -- the tensor structure, for the tensor core itself. */
#ifndef OPSCOPE_TENSOR_CORE_TENSOR_H
#define OPSCOPE_TENSOR_CORE_TENSOR_H

#include "opscope/tensor.h"
#include "tensor/memory/storage.h"

struct opscope__grad; /* the autograd state, a layer above: autograd/grad.h */

struct opscope_tensor {
    uint32_t reference_count; /* atomic, like that of a storage */
    uint8_t dtype;            /* opscope_dtype */
    uint8_t dims;
    bool is_contiguous;
    bool is_view;               /* an operator made it as a view of another tensor */
    int64_t count;              /* elements */
    opscope_storage *storage;   /* NULL: an outline, with sizes and dtype only, kept for backward */
    char *data;                 /* of the first element */
    struct opscope__grad *grad; /* NULL: none; freed with the tensor */
    void *wrapper;   /* a language binding's object for this tensor; used by the binding only */
    int64_t shape[]; /* sizes, then strides in elements */
};

#define opscope__sizes(tensor) ((tensor)->shape)
#define opscope__strides(tensor) ((tensor)->shape + (tensor)->dims)

/* Like the public functions, but unchecked: `data` points into `storage`, which they retain;
 * strides NULL: contiguous. */
int opscope__tensor_over(opscope_storage *storage, char *data, opscope_dtype dtype, int dims,
                         const int64_t *sizes, const int64_t *strides, opscope_tensor **out);
/* A view of `base` with other sizes and strides, whose first element is `shift` elements after the
 * base's. */
int opscope__tensor_view(const opscope_tensor *base, int dims, const int64_t *sizes,
                         const int64_t *strides, int64_t shift, opscope_tensor **out);
/* The same storage, sizes and strides, without autograd state. */
int opscope__tensor_alias(const opscope_tensor *base, opscope_tensor **out);
/* Sizes and dtype, no storage. */
int opscope__tensor_outline(const opscope_tensor *base, opscope_tensor **out);
int opscope__tensor_empty(int dims, const int64_t *sizes, opscope_dtype dtype,
                          opscope_tensor **out);
/* The end of a function that fills a new tensor: if `status` is OPSCOPE_OK, *out takes `made`;
 * otherwise releases it (NULL: nothing). Returns `status`. */
int opscope__tensor_finish(int status, opscope_tensor *made, opscope_tensor **out);
/* Counts a write in place. */
void opscope__tensor_written(const opscope_tensor *tensor);

/* Sets the function that frees a tensor's `grad`. The layer above calls it from a constructor
 * function. */
void opscope__tensor_set_grad_destructor(void (*destroy)(struct opscope__grad *grad));

/* shape_of.c: after this call, traces may read the shapes of tensors. */
void opscope__shapes_start(void);

#endif
