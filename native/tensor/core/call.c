/* tensor/core/call.c -- functions that an operator's forward calls about its own call. */
#include "tensor/core/call.h"

#include <stdlib.h>

const char *opscope__call_name(const struct opscope__call *call)
{
    return call->op->name;
}

opscope_tensor *opscope__call_into(const struct opscope__call *call)
{
    return call->into;
}

void opscope__call_save(struct opscope__call *call, opscope_tensor *tensor)
{
    if (call->wants_grad && call->saved_count < OPSCOPE__SAVED_BY_FORWARD) {
        call->saved[call->saved_count++] = opscope_tensor_retain(tensor);
    }
}

int opscope__call_append(struct opscope__call *call, opscope_tensor *tensor)
{
    opscope_tensor_list *list = call->list;
    if (tensor == NULL) {
        return OPSCOPE_ERR_INVALID;
    }
    /* Doubles the capacity at each power of two. */
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count == 0 ? 1 : 2 * list->count;
        void *grown = realloc(list->tensors, capacity * sizeof *list->tensors);
        if (grown == NULL) {
            opscope_tensor_release(tensor);
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory for its outputs",
                                       call->op->name);
        }
        list->tensors = grown;
    }
    list->tensors[list->count++] = tensor;
    return OPSCOPE_OK;
}

void opscope_tensor_list_release(opscope_tensor_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        opscope_tensor_release(list->tensors[i]);
    }
    free(list->tensors);
    *list = (opscope_tensor_list){NULL, 0};
}
