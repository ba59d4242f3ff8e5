/* torch_range.h -- what PyTorch calls: the start and the end of its ranges. */
#ifndef OPSCOPE_BRIDGES_TORCH_RANGE_H
#define OPSCOPE_BRIDGES_TORCH_RANGE_H

#include "bridges/torch_symbols.h"

struct opscope__torch_context **opscope__torch_range_start(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn);
/* The same where PyTorch has drawn already, with the probability of the only callback there is. */
struct opscope__torch_context **opscope__torch_range_start_drawn(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn);
void opscope__torch_range_end(const struct opscope__torch_function *fn,
                              struct opscope__torch_context *context);

/* Seeds PyTorch's sampling of this thread, which by itself draws the same in every thread and
 * process, from the operating system. */
void opscope__torch_seed_sampling(void);

/* torch_values.c: an opscope_box each, over a range of PyTorch's. */
size_t opscope__torch_box_inputs(void *fn, opscope_value *values, size_t capacity);
size_t opscope__torch_box_outputs(void *fn, opscope_value *values, size_t capacity);
/* Lets traces know the shapes of PyTorch's tensors. */
void opscope__torch_register_shapes(void);

/* torch_op.c: the operator of a range of PyTorch's. Cheap from the second time on. */
const opscope_op *opscope__torch_op(const struct opscope__torch_function *fn);
/* What a range of each of them costs beyond the recorder's own part: of those known and to come. */
void opscope__torch_ops_cost(uint64_t extra_ps);
/* For the time of a fork. The lock comes before that of the operators of record/op.c. */
void opscope__torch_ops_lock(void);
void opscope__torch_ops_unlock(void);
/* The phase that a range of that name and scope is of by itself. */
opscope_phase opscope__torch_phase(const char *name, opscope_scope scope);

#endif
