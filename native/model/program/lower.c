/* model/program/lower.c -- blocks, If and Loop. */
#include "model/program/lower.h"

#include <stdlib.h>
#include <string.h>

#include "model/program/fused.h"
#include "opscope/status.h"

static int lower_block(struct opscope__emitter *emitter, const struct opscope__graph_block *block);

/* ---- moves ------------------------------------------------------------------------------------- */

static bool is_last_in(const struct opscope__emitter *emitter,
                       const struct opscope__graph_block *block,
                       const struct opscope__graph_value *value)
{
    const struct opscope__graph_block *home =
        value->node != NULL ? value->node->block : value->block;
    return home == block && emitter->last_use[value->number] == &opscope__block_end;
}

/* Moves a value that a block returns, or (`block` NULL) that is used further on. */
static int move(struct opscope__emitter *emitter, const struct opscope__graph_block *block,
                const struct opscope__graph_value *value, opscope__operand to)
{
    if (opscope__emit_operand(emitter, value) == to) {
        return OPSCOPE_OK;
    }
    int status = opscope__emit_begin(emitter, OPSCOPE__CODE_MOVE, NULL);
    if (status == OPSCOPE_OK) {
        status =
            opscope__emit_used(emitter, value, block != NULL && is_last_in(emitter, block, value));
    }
    return status == OPSCOPE_OK ? opscope__emit_output(emitter, to) : status;
}

static int move_register(struct opscope__emitter *emitter, opscope__operand from,
                         opscope__operand to)
{
    int status = opscope__emit_begin(emitter, OPSCOPE__CODE_MOVE, NULL);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_input(emitter, from);
    }
    return status == OPSCOPE_OK ? opscope__emit_output(emitter, to) : status;
}

/* ---- what a node with blocks used last ---------------------------------------------------------- */

static int drop_value(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                      const struct opscope__graph_value *value)
{
    if (emitter->last_use[value->number] != node) {
        return OPSCOPE_OK;
    }
    emitter->last_use[value->number] = &opscope__block_end; /* dropped once */
    bool is_held = (opscope__emit_operand(emitter, value) & OPSCOPE__OPERAND_CONSTANT) == 0 &&
                   opscope__type_is_held(value->type);
    return is_held ? opscope__emit_input(
                         emitter, opscope__emit_operand(emitter, value) | OPSCOPE__OPERAND_LAST)
                   : OPSCOPE_OK;
}

static int drop_uses(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                     const struct opscope__graph_uses *uses)
{
    int status = OPSCOPE_OK;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < uses->count; i++) {
        status = drop_value(emitter, node, uses->at[i].value);
    }
    return status;
}

static int drop_inside(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                       const struct opscope__graph_node *inner)
{
    int status = drop_uses(emitter, node, &inner->inputs);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < inner->block_count; i++) {
        const struct opscope__graph_block *block = inner->blocks[i];
        for (const struct opscope__graph_node *next = block->first;
             status == OPSCOPE_OK && next != NULL; next = next->next) {
            status = drop_inside(emitter, node, next);
        }
        if (status == OPSCOPE_OK) {
            status = drop_uses(emitter, node, &block->outputs);
        }
    }
    return status;
}

/* Behind a node with blocks: drops the values that it used last, and its outputs that nothing
 * uses. */
static int drop_behind(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    int status = opscope__emit_begin(emitter, OPSCOPE__CODE_DROP, node);
    if (status == OPSCOPE_OK) {
        status = drop_inside(emitter, node, node);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->outputs.count; i++) {
        const struct opscope__graph_value *value = node->outputs.at[i];
        if (emitter->last_use[value->number] == NULL && opscope__type_is_held(value->type)) {
            status = opscope__emit_input(
                emitter, opscope__emit_operand(emitter, value) | OPSCOPE__OPERAND_LAST);
        }
    }
    return status;
}

/* ---- If ----------------------------------------------------------------------------------------- */

static int lower_branch(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                        const struct opscope__graph_block *block)
{
    int status = lower_block(emitter, block);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->outputs.count; i++) {
        status = move(emitter, block, block->outputs.at[i].value,
                      opscope__emit_operand(emitter, node->outputs.at[i]));
    }
    return status;
}

static int lower_if(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    for (uint32_t i = 0; i < node->outputs.count; i++) {
        opscope__emit_value(emitter, node->outputs.at[i]);
    }
    size_t branch = opscope__emit_count(emitter), over = 0;
    int status = opscope__emit_begin(emitter, OPSCOPE__CODE_JUMP_UNLESS, node);
    if (status == OPSCOPE_OK) {
        status =
            opscope__emit_input(emitter, opscope__emit_operand(emitter, node->inputs.at[0].value));
    }
    if (status == OPSCOPE_OK) {
        status = lower_branch(emitter, node, node->blocks[0]);
    }
    if (status == OPSCOPE_OK) {
        over = opscope__emit_count(emitter);
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_JUMP, node);
    }
    if (status == OPSCOPE_OK) {
        opscope__emit_land(emitter, branch);
        status = lower_branch(emitter, node, node->blocks[1]);
    }
    if (status == OPSCOPE_OK) {
        opscope__emit_land(emitter, over);
        status = drop_behind(emitter, node);
    }
    return status;
}

/* ---- Loop --------------------------------------------------------------------------------------- */

/* The values that a loop carries stay in the registers of its block's inputs, which are those of
 * its outputs too. */
static int begin_loop(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_block *block = node->blocks[0];
    int status = OPSCOPE_OK;
    opscope__emit_value(emitter, block->inputs.at[0]);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->outputs.count; i++) {
        const struct opscope__graph_value *carried = block->inputs.at[i + 1];
        opscope__emit_value(emitter, carried);
        emitter->of_value[node->outputs.at[i]->number] = opscope__emit_operand(emitter, carried);
        status = move(emitter, NULL, node->inputs.at[i + 2].value,
                      opscope__emit_operand(emitter, carried));
    }
    return status;
}

/* Whether a value that the block returns stands in a register that is overwritten before it is
 * read. */
static bool needs_copies(const struct opscope__graph_block *block)
{
    for (uint32_t i = 1; i < block->outputs.count; i++) {
        const struct opscope__graph_value *value = block->outputs.at[i].value;
        if (value->node == NULL && value->block == block && value->index != i) {
            return true;
        }
    }
    return false;
}

static int next_round(struct opscope__emitter *emitter, const struct opscope__graph_block *block,
                      opscope__operand condition)
{
    int status = move(emitter, block, block->outputs.at[0].value, condition);
    uint32_t count = block->outputs.count;
    if (!needs_copies(block)) {
        for (uint32_t i = 1; status == OPSCOPE_OK && i < count; i++) {
            status = move(emitter, block, block->outputs.at[i].value,
                          opscope__emit_operand(emitter, block->inputs.at[i]));
        }
        return status;
    }
    opscope__operand first = emitter->program->register_count;
    emitter->program->register_count += count;
    for (uint32_t i = 1; status == OPSCOPE_OK && i < count; i++) {
        status = move(emitter, block, block->outputs.at[i].value, first + i);
    }
    for (uint32_t i = 1; status == OPSCOPE_OK && i < count; i++) {
        status = move_register(emitter, (first + i) | OPSCOPE__OPERAND_LAST,
                               opscope__emit_operand(emitter, block->inputs.at[i]));
    }
    return status;
}

/* The instruction that begins each round: most rounds, condition -> rounds so far, round. */
static int emit_loop(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                     opscope__operand condition, opscope__operand rounds)
{
    const opscope__operand operands[] = {
        opscope__emit_operand(emitter, node->inputs.at[0].value), condition, rounds,
        opscope__emit_operand(emitter, node->blocks[0]->inputs.at[0])};
    int status = opscope__emit_begin(emitter, OPSCOPE__CODE_LOOP, node);
    for (size_t i = 0; status == OPSCOPE_OK && i < 4; i++) {
        status = i < 2 ? opscope__emit_input(emitter, operands[i])
                       : opscope__emit_output(emitter, operands[i]);
    }
    return status;
}

static int lower_loop(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_block *block = node->blocks[0];
    opscope__operand condition = opscope__emit_register(emitter);
    opscope__operand rounds = opscope__emit_register(emitter), zero;
    int status = begin_loop(emitter, node);
    if (status == OPSCOPE_OK) {
        status = opscope__emit_constant(emitter, opscope__value_int(0), &zero);
    }
    if (status == OPSCOPE_OK) {
        status = move_register(emitter, zero, rounds);
    }
    if (status == OPSCOPE_OK) {
        status = move(emitter, NULL, node->inputs.at[1].value, condition);
    }
    size_t head = opscope__emit_count(emitter);
    if (status == OPSCOPE_OK) {
        status = emit_loop(emitter, node, condition, rounds);
    }
    if (status == OPSCOPE_OK) {
        status = lower_block(emitter, block);
    }
    if (status == OPSCOPE_OK) {
        status = next_round(emitter, block, condition);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_JUMP, node);
    }
    if (status == OPSCOPE_OK) {
        opscope__emit_last(emitter)->as.target = (uint32_t)head;
        opscope__emit_land(emitter, head);
        status = drop_behind(emitter, node);
    }
    return status;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

/* ---- Fused -------------------------------------------------------------------------------------- */

/* The instruction that runs the operators in one pass, if they can be: it jumps over the block. Its
 * inputs stay, because the block may need them. */
static int emit_fused(struct opscope__emitter *emitter, const struct opscope__graph_node *node,
                      struct opscope__fused_jump **out)
{
    struct opscope__fused_call *call;
    int status = opscope__fused_call_new(node, &call);
    *out = NULL;
    if (status != OPSCOPE_OK || call == NULL) {
        return status;
    }
    struct opscope__fused_jump *jump = calloc(1, sizeof *jump);
    if (jump == NULL) {
        opscope__fused_call_free(call);
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    jump->call = call;
    status = opscope__emit_begin(emitter, OPSCOPE__CODE_FUSED, node);
    if (status != OPSCOPE_OK) {
        opscope__fused_call_free(call);
        free(jump);
        return status;
    }
    opscope__emit_last(emitter)->as.fused = jump;
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->inputs.count; i++) {
        const struct opscope__graph_value *value = node->inputs.at[i].value;
        opscope__operand operand = opscope__emit_operand(emitter, value);
        if (!emitter->keeps_operands && emitter->last_use[value->number] == node &&
            (operand & OPSCOPE__OPERAND_CONSTANT) == 0) {
            jump->spares |= UINT32_C(1) << i;
        }
        status = opscope__emit_input(emitter, operand);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__emit_output(emitter, opscope__emit_operand(emitter, node->outputs.at[0]));
    }
    *out = jump;
    return status;
}

static int lower_fused(struct opscope__emitter *emitter, const struct opscope__graph_node *node)
{
    const struct opscope__graph_block *block = node->blocks[0];
    struct opscope__fused_jump *jump;
    opscope__emit_value(emitter, node->outputs.at[0]);
    int status = emit_fused(emitter, node, &jump);
    for (uint32_t i = 0; status == OPSCOPE_OK && i < node->inputs.count; i++) {
        opscope__emit_value(emitter, block->inputs.at[i]);
        status = move(emitter, NULL, node->inputs.at[i].value,
                      opscope__emit_operand(emitter, block->inputs.at[i]));
    }
    if (status == OPSCOPE_OK) {
        status = lower_branch(emitter, node, block);
    }
    if (status == OPSCOPE_OK && jump != NULL) {
        jump->target = (uint32_t)opscope__emit_count(emitter);
    }
    return status == OPSCOPE_OK ? drop_behind(emitter, node) : status;
}

/* ------------------------------------------------------------------------------------------------- */

static int lower_block(struct opscope__emitter *emitter, const struct opscope__graph_block *block)
{
    int status = OPSCOPE_OK;
    for (const struct opscope__graph_node *node = block->first;
         status == OPSCOPE_OK && node != NULL; node = node->next) {
        status = strcmp(node->kind, "prim::If") == 0      ? lower_if(emitter, node)
                 : strcmp(node->kind, "prim::Loop") == 0  ? lower_loop(emitter, node)
                 : strcmp(node->kind, "prim::Fused") == 0 ? lower_fused(emitter, node)
                                                          : opscope__lower_node(emitter, node);
    }
    return status;
}

int opscope__lower_graph(struct opscope__emitter *emitter)
{
    const struct opscope__graph_block *body = emitter->graph->body;
    for (uint32_t i = 0; i < body->inputs.count; i++) {
        opscope__emit_value(emitter, body->inputs.at[i]);
    }
    opscope__find_last_uses(emitter);
    int status = opscope__check_futures(body);
    if (status == OPSCOPE_OK) {
        status = lower_block(emitter, body);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__emit_begin(emitter, OPSCOPE__CODE_RETURN, NULL);
    }
    for (uint32_t i = 0; status == OPSCOPE_OK && i < body->outputs.count; i++) {
        const struct opscope__graph_value *value = body->outputs.at[i].value;
        status = opscope__emit_used(emitter, value, is_last_in(emitter, body, value));
    }
    return status;
}
