/* tensor/storage.h -- memory that tensors share: counted, with a version for writes in place. */
#ifndef OPSCOPE_TENSOR_STORAGE_H
#define OPSCOPE_TENSOR_STORAGE_H

#include "opscope/tensor.h"

struct opscope_storage {
    uint32_t reference_count; /* atomic: __atomic adds, the last release frees */
    bool read_only;
    uint64_t version; /* atomic: raised by writers, compared by backward */
    void *data;
    size_t bytes;
    const opscope_allocator *allocator; /* NULL: memory of somebody else */
    void (*release)(void *user);        /* of that somebody */
    void *user;
};

/* `bytes` of new memory, one reference. */
int opscope__storage_create(size_t bytes, const opscope_allocator *allocator,
                            opscope_storage **out);
/* Over somebody's memory. On failure `release` is not called. */
int opscope__storage_over(void *data, size_t bytes, bool read_only, void (*release)(void *user),
                          void *user, opscope_storage **out);
void opscope__storage_destroy(opscope_storage *storage);

static inline opscope_storage *opscope__storage_retain(opscope_storage *storage)
{
    __atomic_fetch_add(&storage->reference_count, 1, __ATOMIC_RELAXED);
    return storage;
}

static inline void opscope__storage_release(opscope_storage *storage)
{
    /* A sole owner needs no read-modify-write: nobody else can take a reference. The acquire sees
     * what the others did before they let go. */
    if (__atomic_load_n(&storage->reference_count, __ATOMIC_ACQUIRE) == 1 ||
        __atomic_fetch_sub(&storage->reference_count, 1, __ATOMIC_ACQ_REL) == 1) {
        opscope__storage_destroy(storage);
    }
}

#endif
