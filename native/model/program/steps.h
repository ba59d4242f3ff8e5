/* model/program/steps.h -- the instructions that move values about, and print.
 *
 * Each takes the operands of its instruction, and returns 0 or a negative status.
 */
#ifndef OPSCOPE_MODEL_PROGRAM_STEPS_H
#define OPSCOPE_MODEL_PROGRAM_STEPS_H

#include "model/program/frame.h"

/* COPY, LIST, TUPLE. */
int opscope__run_construct(const struct opscope__frame *frame,
                           const struct opscope__instruction *instruction,
                           const opscope__operand *operands);
int opscope__run_unpack(const struct opscope__frame *frame,
                        const struct opscope__instruction *instruction,
                        const opscope__operand *operands);
/* MOVE, UNWRAP, PART. */
int opscope__run_move(const struct opscope__frame *frame,
                      const struct opscope__instruction *instruction,
                      const opscope__operand *operands);
int opscope__run_print(const struct opscope__frame *frame,
                       const struct opscope__instruction *instruction,
                       const opscope__operand *operands);

#endif
