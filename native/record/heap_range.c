/* record/heap_range.c -- ranges in memory of the library, for callers that cannot hold one. */
#include "record/range.h"

#include <stdlib.h>

#include "record/observer.h"

/* A range of opscope_range_begin; on the thread's free list while it is not open. */
struct opscope__heap_range {
    opscope_range range; /* first: opscope_range_end gets this address */
    opscope_range_info info;
    struct opscope__heap_range *next;
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

opscope_range *opscope_range_begin(const opscope_op *op, const opscope_range_info *info)
{
    if (opscope__range_is_skipped(op)) {
        return NULL;
    }
    struct opscope__thread *thread = opscope__thread_self();
    struct opscope__heap_range *kept = thread != NULL ? take(thread) : NULL;
    if (kept == NULL) {
        return NULL;
    }
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
    opscope_range_close(range);
    put_back(opscope__hot.thread, (struct opscope__heap_range *)(void *)range);
}

static void free_kept(struct opscope__thread *thread)
{
    while (thread->heap_ranges != NULL) {
        struct opscope__heap_range *next = thread->heap_ranges->next;
        free(thread->heap_ranges);
        thread->heap_ranges = next;
    }
}

static const struct opscope__observer observer = {.thread_freed = free_kept};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_RANGES, &observer);
}
