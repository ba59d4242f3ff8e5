/* model/program/frame.h -- the registers of a run, and how instructions read and write them. */
#ifndef OPSCOPE_MODEL_PROGRAM_FRAME_H
#define OPSCOPE_MODEL_PROGRAM_FRAME_H

#include "model/program/code.h"

/* opscope__program_run, by which tasks run. */
typedef int opscope__program_runner(const struct opscope__program *program,
                                    struct opscope__heap *heap, const struct opscope__value *inputs,
                                    const struct opscope__run_options *options,
                                    struct opscope__value *outputs);

/* One run: what an instruction works on. */
struct opscope__frame {
    const struct opscope__program *program;
    struct opscope__value *registers;
    struct opscope__heap *heap;
    const struct opscope__run_options *options;
    opscope__program_runner *run;
    uint64_t rounds; /* of this run alone */
    struct opscope__run_scope scope;
    struct opscope__task *tasks; /* forked by this run (task.c) */
    size_t task_count;
    size_t sweep_count; /* so many tasks are looked through for those that are over */
};

static inline const struct opscope__value *opscope__frame_at(const struct opscope__frame *frame,
                                                             opscope__operand operand)
{
    uint32_t index = operand & OPSCOPE__OPERAND_INDEX;
    return (operand & OPSCOPE__OPERAND_CONSTANT) != 0 ? &frame->program->constants[index]
                                                      : &frame->registers[index];
}

/* A reference of its own to an input: that of the register, if this is its last use. */
static inline struct opscope__value opscope__frame_take(const struct opscope__frame *frame,
                                                        opscope__operand operand)
{
    struct opscope__value *value = &frame->registers[operand & OPSCOPE__OPERAND_INDEX];
    if ((operand & (OPSCOPE__OPERAND_CONSTANT | OPSCOPE__OPERAND_LAST)) != OPSCOPE__OPERAND_LAST) {
        return opscope__value_retain(opscope__frame_at(frame, operand));
    }
    const struct opscope__value taken = *value;
    value->kind = OPSCOPE__VALUE_NONE;
    return taken;
}

static inline void opscope__frame_drop_last(const struct opscope__frame *frame,
                                            const opscope__operand *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if ((inputs[i] & OPSCOPE__OPERAND_LAST) != 0) {
            struct opscope__value *value = &frame->registers[inputs[i] & OPSCOPE__OPERAND_INDEX];
            opscope__value_release(value);
            value->kind = OPSCOPE__VALUE_NONE;
        }
    }
}

/* Takes over the reference of `value`. An output that nothing uses is dropped at once. */
static inline void opscope__frame_set(const struct opscope__frame *frame, opscope__operand operand,
                                      const struct opscope__value *value)
{
    struct opscope__value *place = &frame->registers[operand & OPSCOPE__OPERAND_INDEX];
    if ((operand & OPSCOPE__OPERAND_LAST) != 0) {
        opscope__value_release(value);
        return;
    }
    const struct opscope__value before = *place;
    *place = *value;
    opscope__value_release(&before);
}

#endif
