/* base/atomics.h -- the atomic operations of this library, and the use of each.
 *
 *   load_relaxed      a value that may be slightly old; no other memory depends on it
 *   load_acquire      also makes visible what was written before the matching store_release
 *   store_relaxed     a counter of this thread that others read; it only prevents torn values
 *   store_release     publishes what was written before it
 *   add_relaxed       a counter of several writers off the hot path; returns the previous value
 *   exchange_relaxed  stores a value and returns the previous one
 *   replace_*         compare and exchange: if *pointer equals *expected, stores `value` and
 *                     returns true; otherwise stores the value found in *expected. relaxed;
 *                     release: also publishes; acq_rel: also takes over what another published
 *   drop_reference    decrements a reference count and returns the previous value; acq_rel: the
 *                     last owner sees what all other owners did before
 *
 * A comment next to every use names its partner. The library uses no other operation of
 * <stdatomic.h> except the fences in base/fence.h. Two places write the same operations as
 * builtins: public headers, which include nothing from this folder, and the C code in
 * generate_cffi.py.
 */
#ifndef OPSCOPE_BASE_ATOMICS_H
#define OPSCOPE_BASE_ATOMICS_H

#include <stdbool.h>

#define opscope__load_relaxed(pointer) __atomic_load_n((pointer), __ATOMIC_RELAXED)
#define opscope__load_acquire(pointer) __atomic_load_n((pointer), __ATOMIC_ACQUIRE)
#define opscope__store_relaxed(pointer, value)                                                     \
    __atomic_store_n((pointer), (value), __ATOMIC_RELAXED)
#define opscope__store_release(pointer, value)                                                     \
    __atomic_store_n((pointer), (value), __ATOMIC_RELEASE)
#define opscope__add_relaxed(pointer, value)                                                       \
    __atomic_fetch_add((pointer), (value), __ATOMIC_RELAXED)

#define opscope__exchange_relaxed(pointer, value)                                                  \
    __atomic_exchange_n((pointer), (value), __ATOMIC_RELAXED)
#define opscope__replace_relaxed(pointer, expected, value)                                         \
    __atomic_compare_exchange_n((pointer), (expected), (value), false, __ATOMIC_RELAXED,           \
                                __ATOMIC_RELAXED)
#define opscope__replace_release(pointer, expected, value)                                         \
    __atomic_compare_exchange_n((pointer), (expected), (value), false, __ATOMIC_RELEASE,           \
                                __ATOMIC_RELAXED)
#define opscope__replace_acq_rel(pointer, expected, value)                                         \
    __atomic_compare_exchange_n((pointer), (expected), (value), false, __ATOMIC_ACQ_REL,           \
                                __ATOMIC_RELAXED)
#define opscope__drop_reference(pointer) __atomic_fetch_sub((pointer), 1, __ATOMIC_ACQ_REL)

/* Precedes a function that ThreadSanitizer must not instrument; a comment there says why. */
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define OPSCOPE__UNSYNCHRONIZED __attribute__((noinline, no_sanitize("thread")))
#else
#define OPSCOPE__UNSYNCHRONIZED
#endif

#endif
