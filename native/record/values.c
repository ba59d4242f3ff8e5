/* record/values.c -- inputs and outputs of ranges: boxed for the callbacks that ask, read by them.
 */
#include "record/range.h"

#include <stdlib.h>

#include "record/callback.h"

enum { VALUES_AT_FIRST = 16 };

/* Operators it runs are not recorded: their values would take the place of these. */
static size_t fill_quietly(opscope_box fill, void *arg, struct opscope__values *into)
{
    static const struct opscope__callback boxing;
    const struct opscope__callback *running = opscope__hot.running;
    opscope__hot.running = &boxing;
    size_t count = fill(arg, into->items, into->capacity);
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
        wanted = fill_quietly(fill, arg, into);
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
    if (range->firing == NULL || thread == NULL ||
        (range->fired & range->firing->needs_outputs) == 0) {
        return;
    }
    thread->outputs_of = range;
    opscope__values_box(&thread->outputs, outputs, arg);
}
