/* record/values.c -- inputs and outputs of ranges: boxes them for the callbacks that need them. */
#include "record/range.h"

#include <stdlib.h>

#include "record/callback.h"
#include "record/observer.h"

enum { VALUES_AT_FIRST = 16 };

/* Calls `fill` such that operators it runs are not recorded: their values would overwrite these. */
static size_t fill_quietly(opscope_box fill, void *arg, opscope_value *items, size_t capacity)
{
    static const struct opscope__callback boxing;
    const struct opscope__callback *running = opscope__hot.running;
    opscope__hot.running = &boxing;
    size_t count = fill(arg, items, capacity);
    opscope__hot.running = running;
    return count;
}

void opscope__values_box(struct opscope__values *into, opscope_box fill, void *arg)
{
    into->count = 0;
    size_t wanted = into->capacity != 0 ? into->capacity : VALUES_AT_FIRST;
    for (int round = 0; round < 2; round++) {
        if (wanted > into->capacity) {
            opscope_value *items = realloc(into->items, wanted * sizeof *items);
            if (items == NULL) {
                return;
            }
            into->items = items;
            into->capacity = wanted;
        }
        wanted = fill_quietly(fill, arg, into->items, into->capacity);
        if (wanted <= into->capacity) {
            into->count = wanted;
            return;
        }
    }
}

const opscope_value *opscope_fn_inputs(const opscope_range *fn, size_t *count)
{
    const struct opscope__thread *thread = opscope__hot.thread;
    *count = 0;
    if (thread == NULL || opscope__hot.running == NULL ||
        !opscope__hot.running->spec.needs_inputs || thread->inputs_of != fn) {
        return NULL;
    }
    *count = thread->inputs.count;
    return thread->inputs.items;
}

const opscope_value *opscope_fn_outputs(const opscope_range *fn, size_t *count)
{
    const struct opscope__thread *thread = opscope__hot.thread;
    *count = 0;
    if (thread == NULL || opscope__hot.running == NULL ||
        !opscope__hot.running->spec.needs_outputs || thread->outputs_of != fn) {
        return NULL;
    }
    *count = thread->outputs.count;
    return thread->outputs.items;
}

void opscope_range_outputs(opscope_range *range, opscope_box outputs, void *arg)
{
    struct opscope__thread *thread = opscope__hot.thread;
    if (range->snapshot == NULL || thread == NULL ||
        (range->fired & range->snapshot->needs_outputs) == 0) {
        return;
    }
    thread->outputs_of = range;
    opscope__values_box(&thread->outputs, outputs, arg);
}

size_t opscope_value_items(const opscope_value *list, opscope_value *items, size_t capacity)
{
    return list->kind == OPSCOPE_VALUE_LIST && list->items != NULL
               ? fill_quietly(list->items, list->as.object, items, capacity)
               : 0;
}

static void free_values(struct opscope__thread *thread)
{
    free(thread->inputs.items);
    free(thread->outputs.items);
}

static const struct opscope__observer observer = {.thread_freed = free_values};

static void __attribute__((constructor)) load(void)
{
    opscope__observe(OPSCOPE__PLACE_VALUES, &observer);
}
