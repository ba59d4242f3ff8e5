/* torch/producer.h -- files that PyTorch adds to its archives. */
#ifndef OPSCOPE_BRIDGES_TORCH_PRODUCER_H
#define OPSCOPE_BRIDGES_TORCH_PRODUCER_H

/* NULL, or the reason why no files can be added. */
const char *opscope__torch_archives_fault(void);

#endif
