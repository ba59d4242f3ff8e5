/* tests/native/tensor/exact_memory.h -- an allocator that allocates exactly the requested bytes:
 * the address sanitizer then detects each access beyond, which the library's own rounding of sizes
 * would hide. */
#ifndef OPSCOPE_TESTS_EXACT_MEMORY_H
#define OPSCOPE_TESTS_EXACT_MEMORY_H

#include <stdlib.h>

#include "opscope/tensor.h"

enum { EXACT_MEMORY_LIMIT = 1 << 20 }; /* larger blocks are refused, because they only take time */

static inline void *exact_allocate(void *user, size_t bytes)
{
    (void)user;
    void *data = NULL;
    if (bytes > EXACT_MEMORY_LIMIT || posix_memalign(&data, 64, bytes) != 0) {
        return NULL;
    }
    return data;
}

static inline void exact_release(void *user, void *data, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(data);
}

static const opscope_allocator exact_memory = {"exact", exact_allocate, exact_release, NULL};

#endif
