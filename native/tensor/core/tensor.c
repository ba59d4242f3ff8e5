/* tensor/core/tensor.c -- tensors over storages: creation, views, reference counts, attributes. */
#include "tensor/core/tensor.h"

#include <string.h>

#include "base/atomics.h"
#include "tensor/core/sizes.h"
#include "tensor/memory/block.h"

static size_t bytes_of(int dims)
{
    return sizeof(opscope_tensor) + 2 * (size_t)dims * sizeof(int64_t);
}

/* A tensor of these sizes and strides (NULL: contiguous) without storage or data. */
static int outline(opscope_dtype dtype, int dims, const int64_t *sizes, const int64_t *strides,
                   opscope_tensor **out)
{
    opscope_tensor *tensor = opscope__block_take(bytes_of(dims));
    if (tensor == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for a tensor");
    }
    tensor->reference_count = 1;
    tensor->dtype = (uint8_t)dtype;
    tensor->dims = (uint8_t)dims;
    tensor->is_contiguous = true;
    tensor->is_view = false;
    tensor->storage = NULL;
    tensor->data = NULL;
    tensor->grad = NULL;
    tensor->wrapper = NULL;
    int64_t count = 1;
    bool is_beyond = false;
    int64_t *into = tensor->shape + dims;
    for (int i = dims - 1; i >= 0; i--) {
        tensor->shape[i] = sizes[i];
        into[i] = strides != NULL ? strides[i] : count;
        tensor->is_contiguous &= sizes[i] == 1 || into[i] == count;
        /* An empty tensor gets the strides of one with sizes 1 in place of 0, as in PyTorch. */
        is_beyond |=
            __builtin_mul_overflow(count, sizes[i] != 0 || strides != NULL ? sizes[i] : 1, &count);
    }
    tensor->count = opscope__count_of(dims, sizes);
    is_beyond = strides == NULL ? is_beyond || count > OPSCOPE__STRIDE_LIMIT
                                : tensor->count == OPSCOPE__COUNT_BEYOND;
    if (__builtin_expect(is_beyond, 0)) {
        opscope__block_give(tensor, bytes_of(dims));
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "sizes %s have too many elements to count",
                                   opscope__sizes_text(dims, sizes).text);
    }
    tensor->is_contiguous |= tensor->count == 0;
    *out = tensor;
    return OPSCOPE_OK;
}

int opscope__tensor_over(opscope_storage *storage, char *data, opscope_dtype dtype, int dims,
                         const int64_t *sizes, const int64_t *strides, opscope_tensor **out)
{
    opscope_tensor *tensor;
    int status = outline(dtype, dims, sizes, strides, &tensor);
    if (status == OPSCOPE_OK) {
        tensor->storage = opscope__storage_retain(storage);
        tensor->data = data;
        *out = tensor;
    }
    return status;
}

int opscope__tensor_view(const opscope_tensor *base, int dims, const int64_t *sizes,
                         const int64_t *strides, int64_t shift, opscope_tensor **out)
{
    int64_t bytes = shift * (int64_t)opscope_dtype_bytes(base->dtype);
    return opscope__tensor_over(base->storage, base->data + bytes, base->dtype, dims, sizes,
                                strides, out);
}

int opscope__tensor_alias(const opscope_tensor *base, opscope_tensor **out)
{
    return opscope__tensor_view(base, base->dims, opscope__sizes(base), opscope__strides(base), 0,
                                out);
}

int opscope__tensor_outline(const opscope_tensor *base, opscope_tensor **out)
{
    return outline(base->dtype, base->dims, opscope__sizes(base), NULL, out);
}

static int check_sizes(int dims, const int64_t *sizes, opscope_dtype dtype, size_t *bytes)
{
    if (dims < 0 || dims > OPSCOPE_DIM_LIMIT) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "a tensor has at most %d dimensions, not %d", OPSCOPE_DIM_LIMIT,
                                   dims);
    }
    size_t item = opscope_dtype_bytes(dtype);
    if (item == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "dtype %d is unknown", (int)dtype);
    }
    int64_t total = (int64_t)item;
    bool is_empty = false;
    for (int i = 0; i < dims; i++) {
        if (sizes[i] < 0) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "size %lld of dimension %d is negative",
                                       (long long)sizes[i], i);
        }
        is_empty |= sizes[i] == 0;
    }
    for (int i = 0; i < dims && !is_empty; i++) {
        if (__builtin_mul_overflow(total, sizes[i], &total)) {
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "sizes %s exceed memory",
                                       opscope__sizes_text(dims, sizes).text);
        }
    }
    *bytes = is_empty ? 0 : (size_t)total;
    return OPSCOPE_OK;
}

static int create(int dims, const int64_t *sizes, opscope_dtype dtype, size_t bytes,
                  const opscope_allocator *allocator, opscope_tensor **out)
{
    opscope_tensor *tensor;
    int status = outline(dtype, dims, sizes, NULL, &tensor);
    if (status != OPSCOPE_OK) {
        return status;
    }
    status = opscope__storage_create(bytes, allocator, &tensor->storage);
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(tensor);
        return status;
    }
    tensor->data = tensor->storage->data;
    *out = tensor;
    return OPSCOPE_OK;
}

int opscope_tensor_empty(int dims, const int64_t *sizes, opscope_dtype dtype,
                         const opscope_allocator *allocator, opscope_tensor **out)
{
    size_t bytes;
    int status = check_sizes(dims, sizes, dtype, &bytes);
    return status == OPSCOPE_OK ? create(dims, sizes, dtype, bytes, allocator, out) : status;
}

int opscope__tensor_empty(int dims, const int64_t *sizes, opscope_dtype dtype, opscope_tensor **out)
{
    return opscope_tensor_empty(dims, sizes, dtype, NULL, out);
}

int opscope_tensor_from_memory(void *data, int dims, const int64_t *sizes, const int64_t *strides,
                               opscope_dtype dtype, bool read_only, void (*release)(void *user),
                               void *user, opscope_tensor **out)
{
    size_t bytes;
    int status = check_sizes(dims, sizes, dtype, &bytes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t item = (int64_t)opscope_dtype_bytes(dtype);
    struct opscope__extent extent;
    status = opscope__extent_of(dims, sizes, strides, &extent);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope_storage *storage;
    size_t span = bytes != 0 ? (size_t)((extent.last - extent.first + 1) * item) : 0;
    status = opscope__storage_over((char *)data + (bytes != 0 ? extent.first * item : 0), span,
                                   read_only, release, user, &storage);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope_tensor *tensor;
    status = opscope__tensor_over(storage, data, dtype, dims, sizes, strides, &tensor);
    if (status != OPSCOPE_OK) {
        storage->release = NULL;
    }
    opscope__storage_release(storage);
    if (status == OPSCOPE_OK) {
        *out = tensor;
    }
    return status;
}

int opscope_tensor_as_strided(opscope_tensor *base, int dims, const int64_t *sizes,
                              const int64_t *strides, int64_t offset, opscope_tensor **out)
{
    size_t bytes;
    int status = check_sizes(dims, sizes, base->dtype, &bytes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__extent extent;
    status = opscope__extent_of(dims, sizes, strides, &extent);
    if (status != OPSCOPE_OK) {
        return status;
    }
    int64_t held = (int64_t)(base->storage->bytes / opscope_dtype_bytes(base->dtype));
    int64_t first, last;
    bool outside = __builtin_add_overflow(offset, extent.first, &first) ||
                   __builtin_add_overflow(offset, extent.last, &last) || first < 0 || last >= held;
    if (bytes == 0) {
        outside = offset < 0 || offset > held;
    }
    if (outside) {
        return opscope_tensor_fail(
            OPSCOPE_ERROR_VALUE,
            "as_strided: sizes %s, strides %s and offset %lld reach beyond the storage of %lld "
            "elements",
            opscope__sizes_text(dims, sizes).text, opscope__sizes_text(dims, strides).text,
            (long long)offset, (long long)held);
    }
    char *data = (char *)base->storage->data + offset * (int64_t)opscope_dtype_bytes(base->dtype);
    return opscope__tensor_over(base->storage, data, base->dtype, dims, sizes, strides, out);
}

/* Written by a constructor function, before any tensor has a grad. */
static void (*destroy_grad)(struct opscope__grad *grad);

void opscope__tensor_set_grad_destructor(void (*destroy)(struct opscope__grad *grad))
{
    destroy_grad = destroy;
}

opscope_tensor *opscope_tensor_retain(opscope_tensor *tensor)
{
    opscope__add_relaxed(&tensor->reference_count, 1);
    return tensor;
}

void opscope_tensor_release(opscope_tensor *tensor)
{
    /* Like opscope__storage_release. */
    if (tensor == NULL || (opscope__load_acquire(&tensor->reference_count) != 1 &&
                           opscope__drop_reference(&tensor->reference_count) != 1)) {
        return;
    }
    if (tensor->grad != NULL) {
        destroy_grad(tensor->grad);
    }
    if (tensor->storage != NULL) {
        opscope__storage_release(tensor->storage);
    }
    opscope__block_give(tensor, bytes_of(tensor->dims));
}

int opscope__tensor_finish(int status, opscope_tensor *made, opscope_tensor **out)
{
    if (status == OPSCOPE_OK) {
        *out = made;
    } else {
        opscope_tensor_release(made);
    }
    return status;
}

void opscope__tensor_written(const opscope_tensor *tensor)
{
    /* Partner: the relaxed load in opscope_tensor_version; the caller orders writers. */
    opscope__add_relaxed(&tensor->storage->version, 1);
}

/* ---- attributes ------------------------------------------------------------------------------ */

int opscope_tensor_dims(const opscope_tensor *tensor)
{
    return tensor->dims;
}

const int64_t *opscope_tensor_sizes(const opscope_tensor *tensor)
{
    return opscope__sizes(tensor);
}

const int64_t *opscope_tensor_strides(const opscope_tensor *tensor)
{
    return opscope__strides(tensor);
}

int64_t opscope_tensor_offset(const opscope_tensor *tensor)
{
    return (tensor->data - (const char *)tensor->storage->data) /
           (int64_t)opscope_dtype_bytes(tensor->dtype);
}

int64_t opscope_tensor_count(const opscope_tensor *tensor)
{
    return tensor->count;
}

opscope_dtype opscope_tensor_dtype(const opscope_tensor *tensor)
{
    return (opscope_dtype)tensor->dtype;
}

void *opscope_tensor_data(const opscope_tensor *tensor)
{
    return tensor->data;
}

void *opscope_tensor_storage_data(const opscope_tensor *tensor)
{
    return tensor->storage->data;
}

size_t opscope_tensor_storage_bytes(const opscope_tensor *tensor)
{
    return tensor->storage->bytes;
}

bool opscope_tensor_is_contiguous(const opscope_tensor *tensor)
{
    return tensor->is_contiguous;
}

bool opscope_tensor_is_alone(const opscope_tensor *tensor)
{
    /* Partner: the release of the last other reference, whose owner does nothing with it after. */
    return opscope__load_acquire(&tensor->reference_count) == 1 && tensor->storage != NULL &&
           opscope__load_acquire(&tensor->storage->reference_count) == 1;
}

bool opscope_tensor_is_read_only(const opscope_tensor *tensor)
{
    return tensor->storage->read_only;
}

uint64_t opscope_tensor_version(const opscope_tensor *tensor)
{
    return opscope__load_relaxed(&tensor->storage->version);
}
