/* tensor/allocator.h -- taking memory for a storage, counted. Private side of opscope/tensor.h. */
#ifndef OPSCOPE_TENSOR_ALLOCATOR_H
#define OPSCOPE_TENSOR_ALLOCATOR_H

#include "opscope/tensor.h"

/* allocator NULL: the default one; *used is the one taken. NULL where it said no. */
void *opscope__memory_take(const opscope_allocator *allocator, size_t bytes,
                           const opscope_allocator **used);
void opscope__memory_give(const opscope_allocator *allocator, void *data, size_t bytes);

#endif
