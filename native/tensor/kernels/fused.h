/* tensor/kernels/fused.h -- several elementwise operators in one pass over memory.
 *
 * The operands' elements are taken in stretches that fit into the first cache. Each step runs its
 * operator's own loop on a stretch, and its result stays in the cache until the last step that
 * reads it has run. Only the last step's result goes to memory. The results have the same bits as
 * those of the operators one by one.
 */
#ifndef OPSCOPE_TENSOR_KERNELS_FUSED_H
#define OPSCOPE_TENSOR_KERNELS_FUSED_H

#include "tensor/kernels/elementwise.h"

enum {
    OPSCOPE__FUSED_STEP_LIMIT = 32,
    OPSCOPE__FUSED_INPUT_LIMIT = 24,
    /* Results that are alive at the same time. */
    OPSCOPE__FUSED_LIVE_LIMIT = 6,
    OPSCOPE__FUSED_NUMBER_LIMIT = 2
};

/* Where a step's operand comes from. */
struct opscope__fused_source {
    bool is_step;  /* the result of an earlier step; else one of the inputs */
    uint8_t index; /* of the step or input */
};

struct opscope__fused_step {
    const struct opscope__elementwise *spec;
    struct opscope__fused_source operands[OPSCOPE__OPERAND_LIMIT - 1];
    uint8_t numbers[OPSCOPE__FUSED_NUMBER_LIMIT]; /* inputs, which are numbers */
    /* Set by opscope__fused_plan. */
    uint8_t place;   /* of its result, among those alive */
    bool takes_step; /* one operand is an earlier result */
    uint32_t takes;  /* bits: the inputs that are operands */
};

struct opscope__fused {
    size_t step_count, input_count;
    struct opscope__fused_step steps[OPSCOPE__FUSED_STEP_LIMIT];
    /* Set by opscope__fused_plan. */
    int64_t cost;     /* of an element, in additions */
    uint32_t numbers; /* bits: the inputs that have to be numbers */
    uint32_t dtypes;  /* bits: for which each step has a loop */
};

/* Gives each result its place. False: too many are alive at a time, a step reads a later one or an
 * input that is not there, or an operator has an operand of another dtype than the result. */
bool opscope__fused_plan(struct opscope__fused *fused);

/* Whether a plan can be run with these inputs, tensors and numbers: all tensors are of one dtype,
 * float32 or float64, for which each step has a loop, and each is contiguous and has the output's
 * sizes, or has one element. Else the caller calls the operators one by one. */
bool opscope__fused_fits(const struct opscope__fused *fused, const opscope_argument *inputs);

/* Runs a plan with inputs that fit. `*out` is a new reference if the status is OK: to `spare`, an
 * input whose elements are no longer needed, if it is not NULL and has the result's sizes. Records
 * no gradient. */
int opscope__fused_run(const struct opscope__fused *fused, const opscope_argument *inputs,
                       opscope_tensor *spare, opscope_tensor **out);

#endif
