/* base/fetch.h -- loads memory into the processor's caches while other work goes on.
 *
 * Work that a program does once in a while, such as a range around a step of training, finds
 * nothing of its code and data in the caches, and waits for one line after another. Whoever knows
 * shortly before that the work will come can have the lines loaded at the same time.
 */
#ifndef OPSCOPE_BASE_FETCH_H
#define OPSCOPE_BASE_FETCH_H

#include <stddef.h>

enum { OPSCOPE__LINE_BYTES = 64 };

/* Any address is allowed: one that is not mapped has no effect. */
static inline void opscope__fetch(const void *start, size_t bytes)
{
    const char *address = start;
    for (size_t at = 0; at < bytes; at += OPSCOPE__LINE_BYTES) {
        __builtin_prefetch(address + at);
    }
}

/* The first bytes of a function: the second-level cache holds code and data alike. */
#define OPSCOPE__FETCH_CODE(function, bytes)                                                       \
    do {                                                                                           \
        for (size_t at = 0; at < (bytes); at += OPSCOPE__LINE_BYTES) {                             \
            __builtin_prefetch((const char *)(uintptr_t)(function) + at, 0, 2);                    \
        }                                                                                          \
    } while (0)

#endif
