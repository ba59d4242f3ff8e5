/* tensor/list.c -- results of operators that give a list of tensors, as split does. */
#include <stdlib.h>

#include "tensor/call.h"

int opscope__call_append(struct opscope__call *call, opscope_tensor *tensor)
{
    opscope_tensor_list *list = call->list;
    if (tensor == NULL) {
        return OPSCOPE_ERR_INVALID;
    }
    /* Grows where the count is a power of two. */
    if ((list->count & (list->count - 1)) == 0) {
        size_t capacity = list->count == 0 ? 1 : 2 * list->count;
        void *grown = realloc(list->tensors, capacity * sizeof *list->tensors);
        if (grown == NULL) {
            opscope_tensor_release(tensor);
            return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "%s: out of memory for its outputs",
                                       opscope__call_name(call));
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
