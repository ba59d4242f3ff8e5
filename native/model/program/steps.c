/* model/program/steps.c -- the instructions that move values about, and print. */
#include "model/program/steps.h"

#include <stdlib.h>

#include "model/program/show.h"
#include "opscope/status.h"

/* A new list; lists in it are new too. No deeper than its type. */
static struct opscope__sequence *copy_list(struct opscope__heap *heap,
                                           const struct opscope__sequence *list)
{
    struct opscope__sequence *copy = opscope__sequence_new(heap, list->count);
    for (size_t i = 0; copy != NULL && i < list->count; i++) {
        struct opscope__value item = list->items[i];
        if (item.kind == OPSCOPE__VALUE_LIST) {
            item.as.sequence = copy_list(heap, item.as.sequence);
        }
        if (item.kind == OPSCOPE__VALUE_LIST && item.as.sequence == NULL) {
            opscope__sequence_release(copy);
            return NULL;
        }
        copy->items[copy->count++] = item; /* else a number, or a text that is never counted */
    }
    return copy;
}

int opscope__run_construct(const struct opscope__frame *frame,
                           const struct opscope__instruction *instruction,
                           const opscope__operand *operands)
{
    uint32_t count = instruction->input_count;
    bool is_copy = instruction->code == OPSCOPE__CODE_COPY;
    struct opscope__sequence *made =
        is_copy ? copy_list(frame->heap, opscope__frame_at(frame, operands[0])->as.sequence)
                : opscope__sequence_new(frame->heap, count);
    if (made == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; !is_copy && i < count; i++) {
        made->items[made->count++] = opscope__frame_take(frame, operands[i]);
    }
    const struct opscope__value value = instruction->code == OPSCOPE__CODE_TUPLE
                                            ? opscope__value_tuple(made)
                                            : opscope__value_list(made);
    opscope__frame_set(frame, operands[count], &value);
    return OPSCOPE_OK;
}

int opscope__run_unpack(const struct opscope__frame *frame,
                        const struct opscope__instruction *instruction,
                        const opscope__operand *operands)
{
    const struct opscope__sequence *sequence = opscope__frame_at(frame, operands[0])->as.sequence;
    if (sequence->count != instruction->output_count) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%zu values to unpack, not %u",
                                   sequence->count, instruction->output_count);
    }
    for (uint32_t i = 0; i < instruction->output_count; i++) {
        const struct opscope__value item = opscope__value_retain(&sequence->items[i]);
        opscope__frame_set(frame, operands[1 + i], &item);
    }
    opscope__frame_drop_last(frame, operands, 1);
    return OPSCOPE_OK;
}

/* One value, moved to one register. */
int opscope__run_move(const struct opscope__frame *frame,
                      const struct opscope__instruction *instruction,
                      const opscope__operand *operands)
{
    const struct opscope__value *from = opscope__frame_at(frame, operands[0]);
    if (instruction->code == OPSCOPE__CODE_UNWRAP && from->kind == OPSCOPE__VALUE_NONE) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a None where a value is needed");
    }
    if (instruction->code == OPSCOPE__CODE_PART) {
        const struct opscope__value part =
            opscope__value_retain(&from->as.sequence->items[instruction->as.target]);
        opscope__frame_drop_last(frame, operands, 1);
        opscope__frame_set(frame, operands[1], &part);
        return OPSCOPE_OK;
    }
    const struct opscope__value value = opscope__frame_take(frame, operands[0]);
    opscope__frame_set(frame, operands[1], &value);
    return OPSCOPE_OK;
}

int opscope__run_print(const struct opscope__frame *frame,
                       const struct opscope__instruction *instruction,
                       const opscope__operand *operands)
{
    uint32_t count = instruction->input_count;
    struct opscope__value *values = calloc((size_t)count + 1, sizeof *values);
    if (values == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = *opscope__frame_at(frame, operands[i]);
    }
    int status = OPSCOPE_OK;
    if (frame->options->print != NULL) {
        status = frame->options->print(frame->options->user, values, count);
    } else {
        opscope__show_line(stdout, values, count);
    }
    free(values);
    opscope__frame_drop_last(frame, operands, count);
    return status;
}
