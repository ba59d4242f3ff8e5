/* torch/tensor.h -- reads PyTorch's tensors by PyTorch's C interface for compiled models. */
#ifndef OPSCOPE_BRIDGES_TORCH_TENSOR_H
#define OPSCOPE_BRIDGES_TORCH_TENSOR_H

/* Finds the functions; NULL, or the reason why tensors stay without shape and type. Call it once,
 * before PyTorch gets a callback. */
const char *opscope__torch_find_tensors(void);
/* Enables shapes of PyTorch's tensors in traces. */
void opscope__torch_register_shapes(void);

#endif
