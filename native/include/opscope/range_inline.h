/* opscope/range_inline.h -- the hot path: opening and closing a range.
 *
 * Not for reading first, and not part of the cffi declarations. Each thread counts down, scope by
 * scope, to the next range that any callback wants to see; a registration anywhere changes
 * opscope__version and so sends every thread through the slow path once.
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

/* Owner of every field: the thread itself. */
struct opscope__hot {
    uint64_t version;                   /* of opscope__version, when the countdowns were set */
    uint64_t skip[OPSCOPE_SCOPE_COUNT]; /* ranges up to and with the next one to look at */
    struct opscope__thread *thread;     /* NULL until the thread's first slow path */
    struct opscope__firing *solo;       /* the firing of now, where it has lanes of one callback */
    const struct opscope__callback *running; /* the callback being run now, or NULL */
    uint64_t label_bits;                     /* the label set in force, as in a cell's key */
};

OPSCOPE_API extern OPSCOPE__THREAD_LOCAL struct opscope__hot opscope__hot
    __attribute__((tls_model("initial-exec")));
/* Written with release by whoever changes callbacks (record/callback.c); starts at 1. */
OPSCOPE_API extern uint64_t opscope__version;

OPSCOPE_API void opscope__range_open_slow(opscope_range *range, const opscope_op *op,
                                          const opscope_range_info *info);
OPSCOPE_API void opscope__range_close_slow(opscope_range *range);

/* Counts this range down; true where nobody wants to look at it. */
static inline bool opscope__range_is_skipped(const opscope_op *op)
{
    struct opscope__hot *hot = &opscope__hot;
    /* Relaxed: a late look only delays a new callback; the slow path looks again, ordered. */
    return __builtin_expect(hot->version == __atomic_load_n(&opscope__version, __ATOMIC_RELAXED),
                            1) &&
           __builtin_expect(--hot->skip[op->scope] != 0, 1);
}

static inline void opscope_range_open(opscope_range *range, const opscope_op *op,
                                      const opscope_range_info *info)
{
    if (opscope__range_is_skipped(op)) {
        range->firing = NULL;
        return;
    }
    opscope__range_open_slow(range, op, info);
}

static inline void opscope_range_close(opscope_range *range)
{
    if (__builtin_expect(range->firing != NULL, 0)) {
        opscope__range_close_slow(range);
    }
}

OPSCOPE_END_DECLS

#endif
