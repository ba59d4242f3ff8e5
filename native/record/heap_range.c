/* record/kept_range.c -- ranges in the library's memory, for callers that cannot hold one. */
#include "record/range.h"

#include <stdlib.h>

/* A range of opscope_range_begin; on the thread's free list while not open. */
struct opscope__kept_range {
    opscope_range range; /* first: opscope_range_end gets this address */
    opscope_range_info info;
    struct opscope__kept_range *next;
};

static struct opscope__kept_range *take(struct opscope__thread *thread)
{
    struct opscope__kept_range *kept = thread->kept_ranges;
    if (kept != NULL) {
        thread->kept_ranges = kept->next;
        return kept;
    }
    return malloc(sizeof *kept);
}

static void put_back(struct opscope__thread *thread, struct opscope__kept_range *kept)
{
    if (thread == NULL) {
        free(kept);
        return;
    }
    kept->next = thread->kept_ranges;
    thread->kept_ranges = kept;
}

opscope_range *opscope_range_begin(const opscope_op *op, const opscope_range_info *info)
{
    if (opscope__range_is_skipped(op)) {
        return NULL;
    }
    struct opscope__thread *thread = opscope__thread_self();
    struct opscope__kept_range *kept = thread != NULL ? take(thread) : NULL;
    if (kept == NULL) {
        return NULL;
    }
    if (info != NULL) {
        kept->info = *info;
    }
    opscope__range_open_slow(&kept->range, op, info != NULL ? &kept->info : NULL);
    if (kept->range.firing == NULL) {
        put_back(thread, kept);
        return NULL;
    }
    return &kept->range;
}

void opscope_range_end(opscope_range *range)
{
    opscope_range_close(range);
    put_back(opscope__hot.thread, (struct opscope__kept_range *)(void *)range);
}

void opscope__kept_ranges_free(struct opscope__kept_range *kept)
{
    while (kept != NULL) {
        struct opscope__kept_range *next = kept->next;
        free(kept);
        kept = next;
    }
}
