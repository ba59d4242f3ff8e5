/* opscope/range_inline.h -- the hot path: opening and closing a range.
 *
 * Read record.h first. This file is not part of the cffi declarations. For each scope, a thread
 * counts down to the next range that a callback wants to observe. Every registration changes
 * opscope__version, and so sends every thread through the slow path once.
 */
#ifndef OPSCOPE_RANGE_INLINE_H
#define OPSCOPE_RANGE_INLINE_H

#include "opscope/record.h"

OPSCOPE_BEGIN_DECLS

#ifdef __cplusplus
#define OPSCOPE__THREAD_LOCAL thread_local
#else
#define OPSCOPE__THREAD_LOCAL _Thread_local
#endif

/* The fastest access. musl loads no library with it into a running program. */
#if defined(__GLIBC__)
#define OPSCOPE__TLS_MODEL __attribute__((tls_model("initial-exec")))
#else
#define OPSCOPE__TLS_MODEL
#endif

/* A phase, shifted to its position in a cell's key. */
#define OPSCOPE__PHASE_BITS(phase) ((uint64_t)(phase) << 32)

/* Owner of every field: the thread itself. */
struct opscope__hot {
    uint64_t version;                   /* opscope__version when the countdowns were set */
    uint64_t skip[OPSCOPE_SCOPE_COUNT]; /* ranges left up to and including the next observed one */
    struct opscope__thread *thread;     /* NULL until the thread's first slow path */
    struct opscope__snapshot
        *solo; /* the current snapshot, if all its scope slots belong to one callback */
    const struct opscope__callback *running; /* the callback that runs now, or NULL */
    uint64_t label_bits;                     /* the current label set, as in a cell's key */
    uint64_t phase_bits; /* phase of ranges that no open range encloses, as in a cell's key; 0:
                            unknown */
};

OPSCOPE_API extern OPSCOPE__THREAD_LOCAL struct opscope__hot opscope__hot OPSCOPE__TLS_MODEL;
/* Written with release by each change of callbacks (record/callback.c); starts at 1. */
OPSCOPE_API extern uint64_t opscope__version;

OPSCOPE_API void opscope__range_open_slow(opscope_range *range, const opscope_op *op,
                                          const opscope_range_info *info);
OPSCOPE_API void opscope__range_close_slow(opscope_range *range);

/* Counts this range down; true if no callback wants to observe it. */
static inline bool opscope__range_is_skipped(const opscope_op *op)
{
    struct opscope__hot *hot = &opscope__hot;
    /* Relaxed: a stale value only delays a new callback; the slow path reads it again, ordered. */
    return __builtin_expect(hot->version == __atomic_load_n(&opscope__version, __ATOMIC_RELAXED),
                            1) &&
           __builtin_expect(--hot->skip[op->scope] != 0, 1);
}

static inline void opscope_range_open(opscope_range *range, const opscope_op *op,
                                      const opscope_range_info *info)
{
    if (opscope__range_is_skipped(op)) {
        range->snapshot = NULL;
        return;
    }
    opscope__range_open_slow(range, op, info);
}

static inline void opscope_range_close(opscope_range *range)
{
    if (__builtin_expect(range->snapshot != NULL, 0)) {
        opscope__range_close_slow(range);
    }
}

OPSCOPE_END_DECLS

#endif
