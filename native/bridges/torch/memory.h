/* torch/memory.h -- the bytes that PyTorch's operators allocate in the CPU's memory. */
#ifndef OPSCOPE_BRIDGES_TORCH_MEMORY_H
#define OPSCOPE_BRIDGES_TORCH_MEMORY_H

#include <stdbool.h>

/* From now on, operators get the bytes that they allocate (opscope/memory.h) while this is wanted.
 * Call it after an operator has allocated: the loader may set the slot only then. Returns NULL, or
 * a short reason why it cannot. */
const char *opscope__torch_follow_memory(void);
/* Call it before callbacks are added, and after they are removed. */
void opscope__torch_want_memory(bool is_wanted);
void opscope__torch_leave_memory(void);

#endif
