/* torch/registry.h -- the lock of PyTorch's global callbacks. */
#ifndef OPSCOPE_BRIDGES_TORCH_REGISTRY_H
#define OPSCOPE_BRIDGES_TORCH_REGISTRY_H

#include "bridges/torch/symbols.h"

/* Finds the lock; NULL if it is not where it is known to be. PyTorch's callbacks are unchanged. */
pthread_mutex_t *opscope__torch_find_registry(void);

/* False if PyTorch no longer has the callback with that handle: the program may clear all. Where
 * the lock was not found, and with it the list, it is true while PyTorch has any callback. */
bool opscope__torch_registry_has(uint64_t handle);

#endif
