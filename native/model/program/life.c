/* model/program/life.c -- a program's life. */
#include "model/program/program.h"

#include <stdlib.h>
#include <string.h>

#include "model/graph/verify.h"
#include "model/program/fused.h"
#include "model/program/lower.h"
#include "model/program/optimize.h"
#include "opscope/status.h"

const struct opscope__model_graph *opscope__program_graph(const struct opscope__program *program)
{
    return program->graph;
}

void opscope__program_release(struct opscope__program *program)
{
    if (program == NULL) {
        return;
    }
    for (size_t i = 0; i < program->instruction_count; i++) {
        if (program->instructions[i].code == OPSCOPE__CODE_CALL) {
            opscope__call_plan_free(program->instructions[i].as.call);
        } else if (program->instructions[i].code == OPSCOPE__CODE_FUSED) {
            opscope__fused_call_free(program->instructions[i].as.fused->call);
            free(program->instructions[i].as.fused);
        }
    }
    for (size_t i = 0; i < program->constant_count; i++) {
        opscope__constant_free(&program->constants[i]);
    }
    free(program->instructions);
    free(program->operands);
    free(program->constants);
    while (program->forked != NULL) {
        struct opscope__forked *next = program->forked->next;
        opscope__program_release(program->forked->program);
        free(program->forked);
        program->forked = next;
    }
    opscope__graph_release(program->graph);
    free(program);
}

static int compare_attributes(const void *one, const void *other)
{
    return strcmp(((const struct opscope__program_attribute *)one)->name,
                  ((const struct opscope__program_attribute *)other)->name);
}

/* Gives the program what was emitted, also after a failure: the program frees it. */
static void hand_over(const struct opscope__emitter *emitter, struct opscope__program *program)
{
    program->instructions = (void *)emitter->instructions.at;
    program->instruction_count = opscope__emit_count(emitter);
    program->operands = (void *)emitter->operands.at;
    program->constants = (void *)emitter->constants.at;
    program->constant_count = emitter->constants.bytes / sizeof *program->constants;
}

static int lower(struct opscope__program *program, const struct opscope__program_source *source)
{
    size_t values = (size_t)opscope__graph_number(program->graph) + 1;
    struct opscope__program_attribute *attributes =
        calloc(source->attribute_count + 1, sizeof *attributes);
    struct opscope__emitter emitter = {
        .program = program,
        .graph = program->graph,
        .attributes = attributes,
        .attribute_count = source->attribute_count,
        .keeps_operands = source->keeps_operands,
        .source = source,
        .make = opscope__program_new,
        .forked = source->forked != NULL ? source->forked : &program->forked,
        .of_value = calloc(values, sizeof *emitter.of_value),
        .last_use = calloc(values, sizeof *emitter.last_use),
        .last_operand = calloc(values, sizeof *emitter.last_operand)};
    int status;
    if (attributes == NULL || emitter.of_value == NULL || emitter.last_use == NULL ||
        emitter.last_operand == NULL) {
        status = opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    } else {
        if (source->attribute_count > 0) {
            memcpy(attributes, source->attributes, source->attribute_count * sizeof *attributes);
        }
        qsort(attributes, source->attribute_count, sizeof *attributes, compare_attributes);
        status = opscope__emit_reserve(&emitter);
    }
    if (status == OPSCOPE_OK) {
        status = opscope__lower_graph(&emitter);
    }
    hand_over(&emitter, program);
    free(attributes);
    free(emitter.of_value);
    free((void *)emitter.last_use);
    free(emitter.last_operand);
    return status;
}

int opscope__program_new(const struct opscope__program_source *source,
                         struct opscope__program **out)
{
    struct opscope__program *program = calloc(1, sizeof *program);
    if (program == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory");
    }
    int status = opscope__graph_inline_calls(source->functions, source->function_count,
                                             source->entry, &program->graph);
    /* A call may have had a wider type than what its function returns. */
    if (status == OPSCOPE_OK) {
        status = opscope__graph_verify(program->graph);
    }
    if (status == OPSCOPE_OK && !source->is_as_written) {
        status = opscope__program_optimize(program->graph);
    }
    if (status == OPSCOPE_OK) {
        status = lower(program, source);
    }
    if (status != OPSCOPE_OK) {
        opscope__program_release(program);
        return status;
    }
    *out = program;
    return OPSCOPE_OK;
}
