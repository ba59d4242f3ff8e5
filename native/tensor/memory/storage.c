/* tensor/memory/storage.c -- creates and frees storages. */
#include "tensor/memory/storage.h"

#include "tensor/memory/allocator.h"
#include "tensor/memory/block.h"

static int no_memory(size_t bytes)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory: %zu bytes were asked for",
                               bytes);
}

int opscope__storage_create(size_t bytes, const opscope_allocator *allocator, opscope_storage **out)
{
    opscope_storage *storage = opscope__block_take(sizeof *storage);
    if (storage == NULL) {
        return no_memory(sizeof *storage);
    }
    const opscope_allocator *used;
    void *data = opscope__memory_take(allocator, bytes, &used);
    if (data == NULL) {
        opscope__block_give(storage, sizeof *storage);
        return no_memory(bytes);
    }
    *storage =
        (opscope_storage){.reference_count = 1, .data = data, .bytes = bytes, .allocator = used};
    *out = storage;
    return OPSCOPE_OK;
}

int opscope__storage_over(void *data, size_t bytes, bool read_only, void (*release)(void *user),
                          void *user, opscope_storage **out)
{
    opscope_storage *storage = opscope__block_take(sizeof *storage);
    if (storage == NULL) {
        return no_memory(sizeof *storage);
    }
    *storage = (opscope_storage){.reference_count = 1,
                                 .read_only = read_only,
                                 .data = data,
                                 .bytes = bytes,
                                 .release = release,
                                 .user = user};
    *out = storage;
    return OPSCOPE_OK;
}

void opscope__storage_destroy(opscope_storage *storage)
{
    if (storage->allocator != NULL) {
        opscope__memory_give(storage->allocator, storage->data, storage->bytes);
    } else if (storage->release != NULL) {
        storage->release(storage->user);
    }
    opscope__block_give(storage, sizeof *storage);
}
