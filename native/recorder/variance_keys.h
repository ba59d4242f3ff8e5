/* recorder/variance_keys.h -- what recorder/variance.c knows of each key: a hash table, which
 * grows. The segment lock guards it. */
#ifndef OPSCOPE_RECORDER_VARIANCE_KEYS_H
#define OPSCOPE_RECORDER_VARIANCE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opscope/segment.h"
#include "recorder/interruption.h"
#include "recorder/off_cpu.h"
#include "segment/table.h"

enum opscope__quantity {
    OPSCOPE__CALLS,
    OPSCOPE__TOTAL,
    OPSCOPE__SELF,
    OPSCOPE__ON_CPU, /* self time without what opscope__off_cpu_read has of it */
    OPSCOPE__QUANTITIES
};

/* The state of one key; of operator `other`: of all operators of its phase. */
struct opscope__known {
    uint64_t key;                            /* 0: free */
    bool is_outer;                           /* every range has weight 1 */
    double now[OPSCOPE__QUANTITIES];         /* sums over the tables */
    double before[OPSCOPE__QUANTITIES];      /* when the last window closed */
    double squares;                          /* sum over the windows of their calls, squared */
    double sum[OPSCOPE__QUANTITIES];         /* of the squared deviations */
    double added[OPSCOPE__QUANTITIES];       /* to them in this window, for its deviations */
    double owed[OPSCOPE__QUANTITIES];        /* of the estimate for owed work */
    double owed_square[OPSCOPE__QUANTITIES]; /* the mean of its square, over the last windows */
    double owed_count;                       /* of those windows */
    double measured, measured_before;        /* self time alone, without that of ranges cut by
                                                windows */
    double growth, excess;                   /* of the self time in this window */
    double counted;                          /* stops in this window, squared */
    opscope__interrupted interrupted;
    double stops_inside; /* of an outer range: the share of the ranges inside it, squared */
    uint64_t window_count;
    opscope_variance *entry;  /* NULL: none yet */
    opscope_off_cpu *off_cpu; /* likewise */
    struct opscope__off_cpu_of off_cpu_of;
};

typedef struct opscope__known_keys {
    struct opscope__known *slots;
    size_t slot_count, used_count;
} opscope__known_keys;

/* Forgets all keys. */
void opscope__known_forget(opscope__known_keys *keys);
/* The key's slot, or the free slot for it. */
struct opscope__known *opscope__known_find(const opscope__known_keys *keys, uint64_t key);
/* The key's, which the first call makes; slots may move then. NULL if memory ran out. */
struct opscope__known *opscope__known_of(opscope__known_keys *keys, uint64_t key);

/* The key of all operators of that one's phase, without labels. Phase 0 alone would give the key 0,
 * which marks a free slot; the id of "other" avoids that. */
static inline uint64_t opscope__known_phase_key(uint64_t key)
{
    return (key & (uint64_t)0xff << 32) | (uint64_t)OPSCOPE__OTHER_OP_ID;
}

static inline bool opscope__known_is_phase(const struct opscope__known *known)
{
    return (uint32_t)known->key == OPSCOPE__OTHER_OP_ID;
}

#endif
