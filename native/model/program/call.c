/* model/program/call.c -- a call of an operator with values. */
#include "model/program/call.h"

#include <stdlib.h>
#include <string.h>

#include "model/program/argument.h"
#include "opscope/status.h"
#include "tensor/dispatch/spare.h"

/* Memory for arguments that are lists. Most fit into the array. */
enum { SCRATCH = 32, FEW = 4 };

struct scratch {
    size_t used;
    size_t block_count;
    void *blocks[OPSCOPE_ARGUMENT_LIMIT];
    int64_t items[SCRATCH];
};

/* NULL: reported. */
static void *take(struct scratch *scratch, size_t count)
{
    if (count <= SCRATCH - scratch->used) {
        void *items = &scratch->items[scratch->used];
        scratch->used += count;
        return items;
    }
    void *block = count <= UINT32_MAX ? malloc(count * sizeof scratch->items[0]) : NULL;
    if (block == NULL) {
        opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for a list of %zu items", count);
        return NULL;
    }
    scratch->blocks[scratch->block_count++] = block;
    return block;
}

/* Takes over the tensors. */
static int give_list(struct opscope__heap *heap, opscope_tensor_list *list,
                     struct opscope__value *out)
{
    struct opscope__sequence *made = opscope__sequence_new(heap, list->count);
    for (size_t i = 0; made != NULL && i < list->count; i++) {
        made->items[made->count++] = opscope__value_tensor(opscope_tensor_retain(list->tensors[i]));
    }
    opscope_tensor_list_release(list);
    if (made == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    *out = opscope__value_list(made);
    return OPSCOPE_OK;
}

static int call(const struct opscope__call_plan *plan, struct opscope__heap *heap,
                opscope_argument *arguments, opscope_tensor *spare, struct opscope__value *outputs)
{
    int status;
    if (plan->is_list) {
        opscope_tensor_list list;
        status = opscope_call_list(plan->op, arguments, plan->shown_count, &list);
        return status == OPSCOPE_OK ? give_list(heap, &list, outputs) : status;
    }
    opscope_tensor *made[OPSCOPE_OUTPUT_LIMIT];
    status = opscope__call_checked(plan->op, arguments, plan->shown_count, spare, made);
    size_t count = status == OPSCOPE_OK ? plan->output_count : 0;
    for (size_t i = 0; i < count; i++) {
        outputs[i] = opscope__value_tensor(made[i]);
    }
    return status;
}

int opscope__call_with(const struct opscope__call_plan *plan, struct opscope__heap *heap,
                       const struct opscope__value *const *inputs, opscope_tensor *spare,
                       struct opscope__value *outputs)
{
    opscope_argument arguments[OPSCOPE_ARGUMENT_LIMIT];
    struct scratch scratch;
    scratch.used = scratch.block_count = 0;
    if (plan->argument_count <= FEW) { /* a size that the compiler knows takes no call */
        memcpy(arguments, plan->arguments, FEW * sizeof *arguments);
    } else {
        memcpy(arguments, plan->arguments, plan->argument_count * sizeof *arguments);
    }
    int status = OPSCOPE_OK;
    for (size_t i = 0; i < plan->given_count; i++) {
        const struct opscope__given *given = &plan->given[i];
        void *memory = NULL;
        if (inputs[i]->kind == OPSCOPE__VALUE_TENSOR) { /* most are: no call either */
            arguments[given->argument] =
                (opscope_argument){OPSCOPE_ARGUMENT_TENSOR, 0, {.tensor = inputs[i]->as.tensor}};
            continue;
        }
        size_t count = opscope__argument_items(given, inputs[i]);
        if (count > 0 && (memory = take(&scratch, count)) == NULL) {
            status = OPSCOPE_ERR_NO_MEMORY;
            break;
        }
        opscope__argument_fill(given, inputs[i], memory, &arguments[given->argument]);
    }
    if (status == OPSCOPE_OK) {
        status = call(plan, heap, arguments, spare, outputs);
    }
    for (size_t i = 0; i < scratch.block_count; i++) {
        free(scratch.blocks[i]);
    }
    return status;
}
