/* model/program/emit.c -- instructions and operands are added to a program. */
#include "model/program/emit.h"

#include "opscope/status.h"

static int push(struct opscope__graph_buffer *buffer, const void *bytes, size_t size)
{
    return opscope__graph_buffer_push(buffer, bytes, size) ? OPSCOPE_OK : OPSCOPE_ERR_NO_MEMORY;
}

opscope__operand opscope__emit_register(struct opscope__emitter *emitter)
{
    return emitter->program->register_count++;
}

void opscope__emit_value(struct opscope__emitter *emitter, const struct opscope__graph_value *value)
{
    emitter->of_value[value->number] = opscope__emit_register(emitter);
}

opscope__operand opscope__emit_operand(const struct opscope__emitter *emitter,
                                       const struct opscope__graph_value *value)
{
    return emitter->of_value[value->number];
}

int opscope__emit_constant(struct opscope__emitter *emitter, struct opscope__value value,
                           opscope__operand *out)
{
    size_t count = emitter->constants.bytes / sizeof value;
    int status = push(&emitter->constants, &value, sizeof value);
    if (status != OPSCOPE_OK) {
        opscope__value_release(&value);
        return status;
    }
    *out = (opscope__operand)count | OPSCOPE__OPERAND_CONSTANT;
    return OPSCOPE_OK;
}

int opscope__emit_begin(struct opscope__emitter *emitter, enum opscope__code code,
                        const struct opscope__graph_node *node)
{
    const struct opscope__instruction instruction = {
        .code = (uint8_t)code,
        .first = (uint32_t)(emitter->operands.bytes / sizeof(opscope__operand)),
        .node = node};
    return push(&emitter->instructions, &instruction, sizeof instruction);
}

struct opscope__instruction *opscope__emit_last(const struct opscope__emitter *emitter)
{
    const struct opscope__graph_buffer *buffer = &emitter->instructions;
    return (struct opscope__instruction *)(void *)(buffer->at + buffer->bytes) - 1;
}

size_t opscope__emit_count(const struct opscope__emitter *emitter)
{
    return emitter->instructions.bytes / sizeof(struct opscope__instruction);
}

void opscope__emit_land(const struct opscope__emitter *emitter, size_t index)
{
    struct opscope__instruction *all = (void *)emitter->instructions.at;
    all[index].as.target = (uint32_t)opscope__emit_count(emitter);
}

int opscope__emit_reserve(struct opscope__emitter *emitter)
{
    const opscope__operand unused = 0;
    return push(&emitter->operands, &unused, sizeof unused);
}

int opscope__emit_input(struct opscope__emitter *emitter, opscope__operand operand)
{
    opscope__emit_last(emitter)->input_count++;
    return push(&emitter->operands, &operand, sizeof operand);
}

int opscope__emit_output(struct opscope__emitter *emitter, opscope__operand operand)
{
    opscope__emit_last(emitter)->output_count++;
    return push(&emitter->operands, &operand, sizeof operand);
}

int opscope__emit_used(struct opscope__emitter *emitter, const struct opscope__graph_value *value,
                       bool is_last)
{
    opscope__operand operand = opscope__emit_operand(emitter, value);
    if (is_last && (operand & OPSCOPE__OPERAND_CONSTANT) == 0 &&
        opscope__type_is_held(value->type)) {
        uint32_t *placed = &emitter->last_operand[value->number];
        if (*placed > 0) {
            ((opscope__operand *)(void *)emitter->operands.at)[*placed - 1] &=
                ~OPSCOPE__OPERAND_LAST;
        }
        *placed = (uint32_t)(emitter->operands.bytes / sizeof operand) + 1;
        operand |= OPSCOPE__OPERAND_LAST;
    }
    return opscope__emit_input(emitter, operand);
}

int opscope__emit_inputs(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->inputs.count; i++) {
        const struct opscope__graph_value *value = node->inputs.at[i].value;
        status = opscope__emit_used(emitter, value, emitter->last_use[value->number] == node);
    }
    return status;
}

int opscope__emit_outputs(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->outputs.count; i++) {
        const struct opscope__graph_value *value = node->outputs.at[i];
        opscope__emit_value(emitter, value);
        bool is_used = emitter->last_use[value->number] != NULL;
        status = opscope__emit_output(
            emitter, opscope__emit_operand(emitter, value) | (is_used ? 0 : OPSCOPE__OPERAND_LAST));
    }
    return status;
}
