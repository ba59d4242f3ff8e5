/* torch/registry.h -- the lock of PyTorch's global callbacks. */
#ifndef OPSCOPE_BRIDGES_TORCH_REGISTRY_H
#define OPSCOPE_BRIDGES_TORCH_REGISTRY_H

#include "bridges/torch/symbols.h"

/* Finds the lock; NULL if it is not where it is known to be. PyTorch's callbacks are unchanged. */
pthread_mutex_t *opscope__torch_find_registry(void);

#endif
