/* torch/empty.h -- a pair of PyTorch callbacks that does nothing. */
#ifndef OPSCOPE_BRIDGES_TORCH_EMPTY_H
#define OPSCOPE_BRIDGES_TORCH_EMPTY_H

#include "bridges/torch/symbols.h"

/* Without a scope: PyTorch never calls it. */
struct opscope__torch_callback opscope__torch_empty_callback(void);

#endif
