/* model/document/stack.c -- items that a parser has read and not yet put into a container. */
#include "model/document/stack.h"

#include <stdlib.h>

#include "model/document/build.h"

bool opscope__stack_push(struct opscope__stack *stack, struct opscope__item *item)
{
    if (stack->count == stack->room) {
        size_t room = stack->room == 0 ? 64 : stack->room * 2;
        struct opscope__item **items = realloc(stack->items, room * sizeof(struct opscope__item *));
        if (items == NULL) {
            opscope__document_no_memory();
            return false;
        }
        stack->items = items;
        stack->room = room;
    }
    stack->items[stack->count++] = item;
    return true;
}

void opscope__stack_free(struct opscope__stack *stack)
{
    free(stack->items);
    *stack = (struct opscope__stack){0};
}
