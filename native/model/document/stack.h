/* model/document/stack.h -- items that a parser has read and not yet put into a container. */
#ifndef OPSCOPE_MODEL_STACK_H
#define OPSCOPE_MODEL_STACK_H

#include <stdbool.h>

#include "model/document/document.h"

/* All zero: empty. The memory is malloc's, freed by opscope__stack_free. */
struct opscope__stack {
    struct opscope__item **items;
    size_t count;
    size_t room;
};

/* False: out of memory, reported. */
bool opscope__stack_push(struct opscope__stack *stack, struct opscope__item *item);
void opscope__stack_free(struct opscope__stack *stack);

#endif
