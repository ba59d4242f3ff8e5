/* torch/op.h -- the operators of PyTorch's ranges, and their phases. */
#ifndef OPSCOPE_BRIDGES_TORCH_OP_H
#define OPSCOPE_BRIDGES_TORCH_OP_H

#include "bridges/torch/symbols.h"

/* The operator of a PyTorch range. Cheap after the first call. */
const opscope_op *opscope__torch_op(const struct opscope__torch_function *fn, uint8_t scope);
/* The same by PyTorch's functions alone, where the layout is not known. */
const opscope_op *opscope__torch_op_by_name(const struct opscope__torch_function *fn,
                                            uint8_t scope);
/* The operator of a range that has only a name. */
const opscope_op *opscope__torch_op_named(const char *name, size_t bytes, uint8_t scope);
/* Sets the extra cost of their ranges beyond the recorder's own part, for existing and future
 * operators. */
void opscope__torch_ops_cost(uint64_t extra_ps);
/* For a fork. The lock comes before that of the operators in record/op.c. */
void opscope__torch_ops_lock(void);
void opscope__torch_ops_unlock(void);

#endif
