/* model/program/run.c -- the interpreter. */
#include <stdlib.h>

#include "base/atomics.h"
#include "model/graph/passes/fuse_elementwise.h"
#include "model/program/call.h"
#include "model/program/fused.h"
#include "model/program/place.h"
#include "model/program/steps.h"
#include "model/program/task.h"
#include "opscope/status.h"
#include "tensor/dispatch/spare.h"

/* A loop polls after so many rounds. */
enum { POLL_ROUNDS = 1 << 14 };

/* ---- instructions ------------------------------------------------------------------------------ */

static bool is_stopped(const struct opscope__frame *frame)
{
    const uint32_t *stop = frame->options->stop;
    const struct opscope__run_scope *outer = frame->options->outer;
    while (__builtin_expect(outer != NULL, 0)) {
        if (opscope__load_relaxed(&outer->is_stopped) != 0) {
            return true;
        }
        outer = outer->outer;
    }
    return stop != NULL && opscope__load_relaxed(stop) != 0;
}

static int stopped(void)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "the run was stopped");
}

/* The memory that a result may take: of the largest tensor that this instruction uses last, if
 * nothing else holds it. */
static inline opscope_tensor *better_spare(opscope_tensor *spare,
                                           const struct opscope__value *value)
{
    return value->kind == OPSCOPE__VALUE_TENSOR && opscope__is_spare(value->as.tensor) &&
                   (spare == NULL || value->as.tensor->count > spare->count)
               ? value->as.tensor
               : spare;
}

static inline int run_call(const struct opscope__frame *frame,
                           const struct opscope__instruction *instruction,
                           const opscope__operand *operands)
{
    const struct opscope__value *inputs[OPSCOPE_ARGUMENT_LIMIT];
    struct opscope__value outputs[OPSCOPE_OUTPUT_LIMIT];
    opscope_tensor *spare = NULL;
    if (is_stopped(frame)) {
        return stopped();
    }
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        inputs[i] = opscope__frame_at(frame, operands[i]);
        if (instruction->as.call->takes_spare && (operands[i] & OPSCOPE__OPERAND_LAST) != 0) {
            spare = better_spare(spare, inputs[i]);
        }
    }
    int status = opscope__call_with(instruction->as.call, frame->heap, inputs, spare, outputs);
    if (status == OPSCOPE_OK) {
        opscope__frame_drop_last(frame, operands, instruction->input_count);
        for (uint32_t i = 0; i < instruction->output_count; i++) {
            opscope__frame_set(frame, operands[instruction->input_count + i], &outputs[i]);
        }
    }
    return status;
}

/* Whether it ran: 1, 0, or a negative status. */
static int run_fused(const struct opscope__frame *frame,
                     const struct opscope__instruction *instruction,
                     const opscope__operand *operands)
{
    const struct opscope__value *inputs[OPSCOPE__GRAPH_FUSED_INPUTS];
    struct opscope__value output;
    opscope_tensor *spare = NULL;
    if (is_stopped(frame)) {
        return stopped();
    }
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        inputs[i] = opscope__frame_at(frame, operands[i]);
        if ((instruction->as.fused->spares >> i & 1) != 0) {
            spare = better_spare(spare, inputs[i]);
        }
    }
    int status = opscope__fused_call_run(instruction->as.fused->call, inputs, spare, &output);
    if (status > 0) {
        opscope__frame_set(frame, operands[instruction->input_count], &output);
    }
    return status;
}

static int run_fork(struct opscope__frame *frame, const struct opscope__instruction *instruction,
                    const opscope__operand *operands)
{
    struct opscope__value future;
    if (is_stopped(frame)) {
        return stopped();
    }
    int status = opscope__task_fork(frame, instruction->as.forked, operands,
                                    instruction->input_count, &future);
    if (status == OPSCOPE_OK) {
        opscope__frame_drop_last(frame, operands, instruction->input_count);
        opscope__frame_set(frame, operands[instruction->input_count], &future);
    }
    return status;
}

static int run_wait(struct opscope__frame *frame, const opscope__operand *operands)
{
    struct opscope__value result;
    int status = opscope__task_wait(frame, opscope__frame_at(frame, operands[0]), &result);
    if (status == OPSCOPE_OK) {
        opscope__frame_drop_last(frame, operands, 1);
        opscope__frame_set(frame, operands[1], &result);
    }
    return status;
}

static inline int run_kind(const struct opscope__frame *frame,
                           const struct opscope__instruction *instruction,
                           const opscope__operand *operands)
{
    struct opscope__value inputs[OPSCOPE__KIND_INPUT_LIMIT] = {{0}}, output;
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        inputs[i] = *opscope__frame_at(frame, operands[i]);
    }
    int status = instruction->as.function(frame->heap, inputs, &output);
    if (status == OPSCOPE_OK) {
        opscope__frame_drop_last(frame, operands, instruction->input_count);
        if (instruction->output_count > 0) {
            opscope__frame_set(frame, operands[instruction->input_count], &output);
        }
    }
    return status;
}

/* How many the outermost run and all its tasks have begun. */
static uint64_t count_round(struct opscope__frame *frame)
{
    struct opscope__run_scope *scope = &frame->scope;
    while (scope->outer != NULL) {
        scope = scope->outer;
    }
    return opscope__add_relaxed(&scope->rounds, 1) + 1;
}

/* Whether there is another round: 1, 0, or a negative status. */
static int run_loop(struct opscope__frame *frame, const opscope__operand *operands)
{
    const struct opscope__run_options *options = frame->options;
    int64_t round = opscope__frame_at(frame, operands[2])->as.integer;
    if (round >= opscope__frame_at(frame, operands[0])->as.integer ||
        opscope__frame_at(frame, operands[1])->as.integer == 0) {
        return 0;
    }
    frame->rounds++;
    if (is_stopped(frame)) {
        return stopped();
    }
    if (options->rounds_limit > 0 && count_round(frame) > options->rounds_limit) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "more than %llu rounds of loops",
                                   (unsigned long long)options->rounds_limit);
    }
    if (options->poll != NULL && frame->rounds % POLL_ROUNDS == 0) {
        int status = options->poll(options->user);
        if (status < 0) {
            return status;
        }
    }
    const struct opscope__value next = opscope__value_int(round + 1);
    const struct opscope__value now = opscope__value_int(round);
    opscope__frame_set(frame, operands[2], &next);
    opscope__frame_set(frame, operands[3], &now);
    return 1;
}

static void run_return(const struct opscope__frame *frame,
                       const struct opscope__instruction *instruction,
                       const opscope__operand *operands, struct opscope__value *outputs)
{
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        outputs[i] = opscope__frame_take(frame, operands[i]);
    }
}

/* ---- the run ---------------------------------------------------------------------------------- */

static int run_instructions(struct opscope__frame *frame, struct opscope__value *outputs)
{
    const struct opscope__program *program = frame->program;
    const struct opscope__instruction *next = program->instructions;
    int status;
    for (;;) {
        const struct opscope__instruction *instruction = next++;
        const opscope__operand *operands = program->operands + instruction->first;
        switch ((enum opscope__code)instruction->code) {
        case OPSCOPE__CODE_CALL:
            status = run_call(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_FUSED:
            status = run_fused(frame, instruction, operands);
            if (status > 0) {
                next = program->instructions + instruction->as.fused->target;
            }
            break;
        case OPSCOPE__CODE_KIND:
            status = run_kind(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_MOVE:
        case OPSCOPE__CODE_UNWRAP:
        case OPSCOPE__CODE_PART:
            status = opscope__run_move(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_JUMP:
            next = program->instructions + instruction->as.target;
            continue;
        case OPSCOPE__CODE_JUMP_UNLESS:
            if (opscope__frame_at(frame, operands[0])->as.integer == 0) {
                next = program->instructions + instruction->as.target;
            }
            continue;
        case OPSCOPE__CODE_LOOP:
            status = run_loop(frame, operands);
            if (status == 0) {
                next = program->instructions + instruction->as.target;
            }
            break;
        case OPSCOPE__CODE_DROP:
            opscope__frame_drop_last(frame, operands, instruction->input_count);
            continue;
        case OPSCOPE__CODE_COPY:
        case OPSCOPE__CODE_LIST:
        case OPSCOPE__CODE_TUPLE:
            status = opscope__run_construct(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_UNPACK:
            status = opscope__run_unpack(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_RAISE:
            status = opscope__raise(opscope__frame_at(frame, operands[0])->as.text->at,
                                    opscope__frame_at(frame, operands[1])->as.text->at);
            break;
        case OPSCOPE__CODE_PRINT:
            status = opscope__run_print(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_FORK:
            status = run_fork(frame, instruction, operands);
            break;
        case OPSCOPE__CODE_WAIT:
            status = run_wait(frame, operands);
            break;
        case OPSCOPE__CODE_RETURN:
            run_return(frame, instruction, operands, outputs);
            return OPSCOPE_OK;
        }
        if (__builtin_expect(status < 0, 0)) {
            opscope__place_failure(instruction->node);
            return status;
        }
    }
}

int opscope__program_run(const struct opscope__program *program, struct opscope__heap *heap,
                         const struct opscope__value *inputs,
                         const struct opscope__run_options *options, struct opscope__value *outputs)
{
    static const struct opscope__run_options usual;
    const struct opscope__graph_values *taken = &program->graph->body->inputs;
    for (uint32_t i = 0; i < taken->count; i++) {
        if (!opscope__value_is_of(&inputs[i], taken->at[i]->type)) {
            return opscope__refuse_input(taken->at[i]);
        }
    }
    struct opscope__frame frame = {
        .program = program,
        .registers = calloc((size_t)program->register_count + 1, sizeof *inputs),
        .heap = heap,
        .run = opscope__program_run,
        .options = options != NULL ? options : &usual};
    frame.scope.outer = frame.options->outer;
    if (frame.registers == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < taken->count; i++) {
        frame.registers[i] = opscope__value_retain(&inputs[i]);
    }
    int status = run_instructions(&frame, outputs);
    const int joined = opscope__tasks_join(&frame, status);
    if (status == OPSCOPE_OK && joined != OPSCOPE_OK) {
        for (uint32_t i = 0; i < program->graph->body->outputs.count; i++) {
            opscope__value_release(&outputs[i]);
            outputs[i] = opscope__value_none;
        }
    }
    status = joined;
    for (uint32_t i = 0; i < program->register_count; i++) {
        opscope__value_release(&frame.registers[i]);
    }
    free(frame.registers);
    opscope__tasks_free(&frame);
    return status;
}
