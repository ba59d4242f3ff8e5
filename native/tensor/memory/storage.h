/* tensor/memory/storage.h -- memory that tensors share: reference-counted, with a version for
 * writes in place. */
#ifndef OPSCOPE_TENSOR_MEMORY_STORAGE_H
#define OPSCOPE_TENSOR_MEMORY_STORAGE_H

#include "base/atomics.h"
#include "opscope/tensor.h"

struct opscope_storage {
    uint32_t reference_count; /* atomic: __atomic additions; the last release frees */
    bool read_only;
    uint64_t version; /* atomic: writers increment it, backward compares it */
    void *data;
    size_t bytes;
    const opscope_allocator *allocator; /* NULL: the memory belongs to the caller */
    void (*release)(void *user);        /* for that memory */
    void *user;
};

/* Allocates `bytes`; the storage has one reference. */
int opscope__storage_create(size_t bytes, const opscope_allocator *allocator,
                            opscope_storage **out);
/* Makes a storage over the caller's memory. On failure it does not call `release`. */
int opscope__storage_over(void *data, size_t bytes, bool read_only, void (*release)(void *user),
                          void *user, opscope_storage **out);
void opscope__storage_destroy(opscope_storage *storage);

static inline opscope_storage *opscope__storage_retain(opscope_storage *storage)
{
    opscope__add_relaxed(&storage->reference_count, 1);
    return storage;
}

static inline void opscope__storage_release(opscope_storage *storage)
{
    /* A sole owner needs no read-modify-write, because no other thread can take a reference. The
     * acquire makes visible what other owners did before they released theirs. */
    if (opscope__load_acquire(&storage->reference_count) == 1 ||
        opscope__drop_reference(&storage->reference_count) == 1) {
        opscope__storage_destroy(storage);
    }
}

#endif
