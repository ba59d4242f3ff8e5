/* base/fence.h -- an asymmetric pair of fences: free on the hot path, expensive on the rare one.
 *
 * Two threads each store their own flag and then read the other's; at least one must see the other.
 * That takes a full fence on both sides, some 20 cycles each. Here the hot side issues a light
 * fence, which only keeps the compiler from reordering. The rare side issues a heavy fence: the
 * kernel runs a full fence on every processor that runs a thread of this process (membarrier(2),
 * MEMBARRIER_CMD_PRIVATE_EXPEDITED). On a kernel without membarrier, and under ThreadSanitizer,
 * which does not know it, the light fence is a full one.
 */
#ifndef OPSCOPE_BASE_FENCE_H
#define OPSCOPE_BASE_FENCE_H

#include <stdbool.h>

#include "opscope/export.h"

/* True if light fences must be full ones. Written once, before a second thread uses the library. */
extern bool opscope__fence_is_symmetric;

/* Idempotent; call it before the first heavy fence. */
void opscope__fence_start(void);
OPSCOPE_API void opscope__fence_heavy(void);

static inline void opscope__fence_full(void)
{
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
/* ThreadSanitizer derives no ordering from a fence. No code here relies on this fence alone for its
 * order. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

static inline void opscope__fence_light(void)
{
    if (__builtin_expect(opscope__fence_is_symmetric, 0)) {
        opscope__fence_full();
    } else {
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
}

#endif
