/* base/atomics.h -- the five atomic operations of this library, and what each is for.
 *
 *   load_relaxed    a value that is right or slightly old, no other memory depends on it
 *   load_acquire    a value after which memory written before the matching store_release is seen
 *   store_relaxed   a counter of this thread's that others read; only tearing is to be avoided
 *   store_release   publishes what was written before it
 *   add_relaxed     a counter of several writers off the hot path; returns the value before
 *
 * Every use names its partner next to it. Nothing else of <stdatomic.h> is used, but for the pair
 * of fences in base/fence.h.
 */
#ifndef OPSCOPE_BASE_ATOMICS_H
#define OPSCOPE_BASE_ATOMICS_H

#define opscope__load_relaxed(pointer) __atomic_load_n((pointer), __ATOMIC_RELAXED)
#define opscope__load_acquire(pointer) __atomic_load_n((pointer), __ATOMIC_ACQUIRE)
#define opscope__store_relaxed(pointer, value)                                                     \
    __atomic_store_n((pointer), (value), __ATOMIC_RELAXED)
#define opscope__store_release(pointer, value)                                                     \
    __atomic_store_n((pointer), (value), __ATOMIC_RELEASE)
#define opscope__add_relaxed(pointer, value)                                                       \
    __atomic_fetch_add((pointer), (value), __ATOMIC_RELAXED)

/* Before a function in which ThreadSanitizer is not to look: it says why. */
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define OPSCOPE__UNSYNCHRONIZED __attribute__((noinline, no_sanitize("thread")))
#else
#define OPSCOPE__UNSYNCHRONIZED
#endif

#endif
