/* model/program/run.c -- the interpreter. */
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "model/graph/passes/fuse_elementwise.h"
#include "model/program/call.h"
#include "model/program/fused.h"
#include "model/program/place.h"
#include "model/program/show.h"
#include "opscope/status.h"

/* A loop polls after so many rounds. */
enum { POLL_ROUNDS = 1 << 14 };

struct run {
    const struct opscope__program *program;
    struct opscope__value *registers;
    struct opscope__heap *heap;
    const struct opscope__run_options *options;
    uint64_t rounds;
};

/* ---- operands --------------------------------------------------------------------------------- */

static inline const struct opscope__value *at(const struct run *run, opscope__operand operand)
{
    uint32_t index = operand & OPSCOPE__OPERAND_INDEX;
    return (operand & OPSCOPE__OPERAND_CONSTANT) != 0 ? &run->program->constants[index]
                                                      : &run->registers[index];
}

/* A reference of its own to an input: that of the register, if this is its last use. */
static struct opscope__value take(const struct run *run, opscope__operand operand)
{
    struct opscope__value *value = &run->registers[operand & OPSCOPE__OPERAND_INDEX];
    if ((operand & (OPSCOPE__OPERAND_CONSTANT | OPSCOPE__OPERAND_LAST)) != OPSCOPE__OPERAND_LAST) {
        return opscope__value_retain(at(run, operand));
    }
    const struct opscope__value taken = *value;
    value->kind = OPSCOPE__VALUE_NONE;
    return taken;
}

static inline void drop_last(const struct run *run, const opscope__operand *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((inputs[i] & OPSCOPE__OPERAND_LAST) != 0) {
            struct opscope__value *value = &run->registers[inputs[i] & OPSCOPE__OPERAND_INDEX];
            opscope__value_release(value);
            value->kind = OPSCOPE__VALUE_NONE;
        }
    }
}

/* Takes over the reference of `value`. An output that nothing uses is dropped at once. */
static inline void set(const struct run *run, opscope__operand operand,
                       const struct opscope__value *value)
{
    struct opscope__value *place = &run->registers[operand & OPSCOPE__OPERAND_INDEX];
    if ((operand & OPSCOPE__OPERAND_LAST) != 0) {
        opscope__value_release(value);
        return;
    }
    const struct opscope__value before = *place;
    *place = *value;
    opscope__value_release(&before);
}

/* ---- instructions ------------------------------------------------------------------------------ */

static bool is_stopped(const struct run *run)
{
    const uint32_t *stop = run->options->stop;
    return stop != NULL && opscope__load_relaxed(stop) != 0;
}

static int stopped(void)
{
    return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "the run was stopped");
}

static inline int run_call(const struct run *run, const struct opscope__instruction *instruction,
                           const opscope__operand *operands)
{
    const struct opscope__value *inputs[OPSCOPE_ARGUMENT_LIMIT];
    struct opscope__value outputs[OPSCOPE_OUTPUT_LIMIT];
    if (is_stopped(run)) {
        return stopped();
    }
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        inputs[i] = at(run, operands[i]);
    }
    int status = opscope__call_with(instruction->as.call, run->heap, inputs, outputs);
    if (status == OPSCOPE_OK) {
        drop_last(run, operands, instruction->input_count);
        for (uint32_t i = 0; i < instruction->output_count; i++) {
            set(run, operands[instruction->input_count + i], &outputs[i]);
        }
    }
    return status;
}

/* Whether it ran: 1, 0, or a negative status. */
static int run_fused(const struct run *run, const struct opscope__instruction *instruction,
                     const opscope__operand *operands)
{
    const struct opscope__value *inputs[OPSCOPE__GRAPH_FUSED_INPUTS];
    struct opscope__value output;
    if (is_stopped(run)) {
        return stopped();
    }
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        inputs[i] = at(run, operands[i]);
    }
    int status = opscope__fused_call_run(instruction->as.fused->call, inputs, &output);
    if (status > 0) {
        set(run, operands[instruction->input_count], &output);
    }
    return status;
}

static inline int run_kind(const struct run *run, const struct opscope__instruction *instruction,
                           const opscope__operand *operands)
{
    struct opscope__value inputs[OPSCOPE__KIND_INPUT_LIMIT] = {{0}}, output;
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        inputs[i] = *at(run, operands[i]);
    }
    int status = instruction->as.function(run->heap, inputs, &output);
    if (status == OPSCOPE_OK) {
        drop_last(run, operands, instruction->input_count);
        if (instruction->output_count > 0) {
            set(run, operands[instruction->input_count], &output);
        }
    }
    return status;
}

/* Whether there is another round: 1, 0, or a negative status. */
static int run_loop(struct run *run, const opscope__operand *operands)
{
    const struct opscope__run_options *options = run->options;
    int64_t round = at(run, operands[2])->as.integer;
    if (round >= at(run, operands[0])->as.integer || at(run, operands[1])->as.integer == 0) {
        return 0;
    }
    run->rounds++;
    if (is_stopped(run)) {
        return stopped();
    }
    if (options->rounds_limit > 0 && run->rounds > options->rounds_limit) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "more than %llu rounds of loops",
                                   (unsigned long long)options->rounds_limit);
    }
    if (options->poll != NULL && run->rounds % POLL_ROUNDS == 0) {
        int status = options->poll(options->user);
        if (status < 0) {
            return status;
        }
    }
    const struct opscope__value next = opscope__value_int(round + 1);
    const struct opscope__value now = opscope__value_int(round);
    set(run, operands[2], &next);
    set(run, operands[3], &now);
    return 1;
}

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

static int run_construct(const struct run *run, const struct opscope__instruction *instruction,
                         const opscope__operand *operands)
{
    uint32_t count = instruction->input_count;
    bool is_copy = instruction->code == OPSCOPE__CODE_COPY;
    struct opscope__sequence *made = is_copy
                                         ? copy_list(run->heap, at(run, operands[0])->as.sequence)
                                         : opscope__sequence_new(run->heap, count);
    if (made == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; !is_copy && i < count; i++) {
        made->items[made->count++] = take(run, operands[i]);
    }
    const struct opscope__value value = instruction->code == OPSCOPE__CODE_TUPLE
                                            ? opscope__value_tuple(made)
                                            : opscope__value_list(made);
    set(run, operands[count], &value);
    return OPSCOPE_OK;
}

static int run_unpack(const struct run *run, const struct opscope__instruction *instruction,
                      const opscope__operand *operands)
{
    const struct opscope__sequence *sequence = at(run, operands[0])->as.sequence;
    if (sequence->count != instruction->output_count) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "%zu values to unpack, not %u",
                                   sequence->count, instruction->output_count);
    }
    for (uint32_t i = 0; i < instruction->output_count; i++) {
        const struct opscope__value item = opscope__value_retain(&sequence->items[i]);
        set(run, operands[1 + i], &item);
    }
    drop_last(run, operands, 1);
    return OPSCOPE_OK;
}

/* One value, moved to one register. */
static int run_move(const struct run *run, const struct opscope__instruction *instruction,
                    const opscope__operand *operands)
{
    const struct opscope__value *from = at(run, operands[0]);
    if (instruction->code == OPSCOPE__CODE_UNWRAP && from->kind == OPSCOPE__VALUE_NONE) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "a None where a value is needed");
    }
    if (instruction->code == OPSCOPE__CODE_PART) {
        const struct opscope__value part =
            opscope__value_retain(&from->as.sequence->items[instruction->as.target]);
        drop_last(run, operands, 1);
        set(run, operands[1], &part);
        return OPSCOPE_OK;
    }
    const struct opscope__value value = take(run, operands[0]);
    set(run, operands[1], &value);
    return OPSCOPE_OK;
}

static int run_print(const struct run *run, const struct opscope__instruction *instruction,
                     const opscope__operand *operands)
{
    uint32_t count = instruction->input_count;
    struct opscope__value *values = calloc((size_t)count + 1, sizeof *values);
    if (values == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        values[i] = *at(run, operands[i]);
    }
    int status = OPSCOPE_OK;
    if (run->options->print != NULL) {
        status = run->options->print(run->options->user, values, count);
    } else {
        opscope__show_line(stdout, values, count);
    }
    free(values);
    drop_last(run, operands, count);
    return status;
}

static void run_return(const struct run *run, const struct opscope__instruction *instruction,
                       const opscope__operand *operands, struct opscope__value *outputs)
{
    for (uint32_t i = 0; i < instruction->input_count; i++) {
        outputs[i] = take(run, operands[i]);
    }
}

/* ---- the run ---------------------------------------------------------------------------------- */

static int run_instructions(struct run *run, struct opscope__value *outputs)
{
    const struct opscope__program *program = run->program;
    const struct opscope__instruction *next = program->instructions;
    int status;
    for (;;) {
        const struct opscope__instruction *instruction = next++;
        const opscope__operand *operands = program->operands + instruction->first;
        switch ((enum opscope__code)instruction->code) {
        case OPSCOPE__CODE_CALL:
            status = run_call(run, instruction, operands);
            break;
        case OPSCOPE__CODE_FUSED:
            status = run_fused(run, instruction, operands);
            if (status > 0) {
                next = program->instructions + instruction->as.fused->target;
            }
            break;
        case OPSCOPE__CODE_KIND:
            status = run_kind(run, instruction, operands);
            break;
        case OPSCOPE__CODE_MOVE:
        case OPSCOPE__CODE_UNWRAP:
        case OPSCOPE__CODE_PART:
            status = run_move(run, instruction, operands);
            break;
        case OPSCOPE__CODE_JUMP:
            next = program->instructions + instruction->as.target;
            continue;
        case OPSCOPE__CODE_JUMP_UNLESS:
            if (at(run, operands[0])->as.integer == 0) {
                next = program->instructions + instruction->as.target;
            }
            continue;
        case OPSCOPE__CODE_LOOP:
            status = run_loop(run, operands);
            if (status == 0) {
                next = program->instructions + instruction->as.target;
            }
            break;
        case OPSCOPE__CODE_DROP:
            drop_last(run, operands, instruction->input_count);
            continue;
        case OPSCOPE__CODE_COPY:
        case OPSCOPE__CODE_LIST:
        case OPSCOPE__CODE_TUPLE:
            status = run_construct(run, instruction, operands);
            break;
        case OPSCOPE__CODE_UNPACK:
            status = run_unpack(run, instruction, operands);
            break;
        case OPSCOPE__CODE_RAISE:
            status = opscope__raise(at(run, operands[0])->as.text->at,
                                    at(run, operands[1])->as.text->at);
            break;
        case OPSCOPE__CODE_PRINT:
            status = run_print(run, instruction, operands);
            break;
        case OPSCOPE__CODE_RETURN:
            run_return(run, instruction, operands, outputs);
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
    struct run run = {.program = program,
                      .registers = calloc((size_t)program->register_count + 1, sizeof *inputs),
                      .heap = heap,
                      .options = options != NULL ? options : &usual};
    if (run.registers == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    for (uint32_t i = 0; i < taken->count; i++) {
        run.registers[i] = opscope__value_retain(&inputs[i]);
    }
    int status = run_instructions(&run, outputs);
    for (uint32_t i = 0; i < program->register_count; i++) {
        opscope__value_release(&run.registers[i]);
    }
    free(run.registers);
    return status;
}
