/* base/fetch.h -- loads memory into the processor's caches while other work goes on.
 *
 * Some work comes once in a while, as a range around a step of training does. By then its code and
 * data have left the caches, and the processor loads them again, one line after another. A caller
 * that knows beforehand that the work will come has all of them loaded at the same time.
 */
#ifndef OPSCOPE_BASE_FETCH_H
#define OPSCOPE_BASE_FETCH_H

#include <stddef.h>
#include <stdint.h>

enum { OPSCOPE__LINE_BYTES = 64 };

/* Any address is allowed: one that is not mapped has no effect. */
static inline void opscope__fetch(const void *start, size_t bytes)
{
    const uintptr_t address = (uintptr_t)start;
    for (size_t at = 0; at < bytes; at += OPSCOPE__LINE_BYTES) {
        __builtin_prefetch((const void *)(address + at));
    }
}

/* The first bytes of a function: the second-level cache holds code and data alike. */
#define OPSCOPE__FETCH_CODE(function, bytes)                                                       \
    do {                                                                                           \
        for (size_t at = 0; at < (bytes); at += OPSCOPE__LINE_BYTES) {                             \
            __builtin_prefetch((const void *)((uintptr_t)(function) + at), 0, 2);                  \
        }                                                                                          \
    } while (0)

#endif
