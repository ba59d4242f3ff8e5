/* tensor/memory/allocator.h -- allocates memory for a storage and counts it. The private part of
 * opscope/tensor.h. */
#ifndef OPSCOPE_TENSOR_MEMORY_ALLOCATOR_H
#define OPSCOPE_TENSOR_MEMORY_ALLOCATOR_H

#include "opscope/tensor.h"

/* allocator NULL: the default one; *used gets the allocator used. Returns NULL if it has no
 * memory. */
void *opscope__memory_take(const opscope_allocator *allocator, size_t bytes,
                           const opscope_allocator **used);
void opscope__memory_give(const opscope_allocator *allocator, void *data, size_t bytes);

#endif
