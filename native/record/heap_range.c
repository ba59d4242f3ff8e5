/* record/heap_range.c -- ranges in memory of the library, for callers that cannot hold one.
 *
 * A block of Python may begin on one thread and end on another: that of a generator which a pool's
 * threads resume in turn. The thread that began the range may run at that moment, so nobody else
 * may touch what the parts of the library keep of it on its stack. Its memory goes back to that
 * thread, which tells the parts when it begins its next such range. Until then no other range has
 * this address. */
#include "record/range.h"

#include <stdlib.h>

#include "base/atomics.h"
#include "base/hot.h"
#include "record/observer.h"

/* A range of opscope_range_begin; on the thread's free list while it is not open. */
struct opscope__heap_range {
    opscope_range range; /* first: opscope_range_end gets this address */
    opscope_range_info info;
    struct opscope__heap_range *next;
    uint64_t owner; /* id of the thread that began it */
};

static struct opscope__heap_range *take(struct opscope__thread *thread)
{
    struct opscope__heap_range *kept = thread->heap_ranges;
    if (kept != NULL) {
        thread->heap_ranges = kept->next;
        return kept;
    }
    return malloc(sizeof *kept);
}

static void put_back(struct opscope__thread *thread, struct opscope__heap_range *kept)
{
    if (thread == NULL) {
        free(kept);
        return;
    }
    kept->next = thread->heap_ranges;
    thread->heap_ranges = kept;
}

/* Gives it to the thread that began it; false if that has ended. */
static bool give_back(struct opscope__heap_range *kept)
{
    opscope__registry_lock();
    struct opscope__thread *owner = opscope__registry_first();
    while (owner != NULL && owner->id != kept->owner) {
        owner = owner->next;
    }
    if (owner != NULL) {
        kept->next = owner->taken_ranges;
        opscope__store_relaxed(&owner->taken_ranges, kept); /* partner: in opscope_range_begin */
    }
    opscope__registry_unlock();
    return owner != NULL;
}

static void OPSCOPE__COLD forget_taken(struct opscope__thread *thread)
{
    opscope__registry_lock();
    struct opscope__heap_range *rest = thread->taken_ranges;
    opscope__store_relaxed(&thread->taken_ranges, NULL);
    opscope__registry_unlock();
    /* The parts forget the innermost first: once one is forgotten, another one may be. */
    for (bool is_over = false; !is_over;) {
        is_over = true;
        struct opscope__heap_range **link = &rest;
        while (*link != NULL) {
            struct opscope__heap_range *kept = *link;
            if (opscope__observers_range_taken(thread, &kept->range)) {
                link = &kept->next;
            } else {
                *link = kept->next;
                put_back(thread, kept);
                is_over = false;
            }
        }
    }
    while (rest != NULL) {
        struct opscope__heap_range *next = rest->next;
        (void)give_back(rest);
        rest = next;
    }
}

opscope_range *opscope_range_begin(const opscope_op *op, const opscope_range_info *info)
{
    if (opscope__range_is_skipped(op)) {
        return NULL;
    }
    struct opscope__thread *thread = opscope__thread_self();
    /* Partner: the store in give_back. A range that is seen later is forgotten later. */
    if (thread != NULL && opscope__load_relaxed(&thread->taken_ranges) != NULL) {
        forget_taken(thread);
    }
    struct opscope__heap_range *kept = thread != NULL ? take(thread) : NULL;
    if (kept == NULL) {
        return NULL;
    }
    kept->owner = thread->id;
    if (info != NULL) {
        kept->info = *info;
    }
    opscope__range_open_slow(&kept->range, op, info != NULL ? &kept->info : NULL);
    if (kept->range.snapshot == NULL) {
        put_back(thread, kept);
        return NULL;
    }
    return &kept->range;
}

void opscope_range_end(opscope_range *range)
{
    struct opscope__heap_range *kept = (struct opscope__heap_range *)(void *)range;
    struct opscope__thread *thread = opscope__hot.thread;
    opscope_range_close(range);
    if ((thread != NULL && thread->id == kept->owner) || !give_back(kept)) {
        put_back(opscope__hot.thread, kept);
    }
}

static void free_all(struct opscope__heap_range *kept)
{
    while (kept != NULL) {
        struct opscope__heap_range *next = kept->next;
        free(kept);
        kept = next;
    }
}

static void free_kept(struct opscope__thread *thread)
{
    free_all(thread->heap_ranges);
    free_all(thread->taken_ranges);
}

static const struct opscope__observer observer = {.thread_freed = free_kept};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_RANGES, &observer);
}
