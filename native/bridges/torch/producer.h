/* torch/producer.h -- extra files in the archives that PyTorch saves. */
#ifndef OPSCOPE_BRIDGES_TORCH_PRODUCER_H
#define OPSCOPE_BRIDGES_TORCH_PRODUCER_H

#include <stdbool.h>

/* While attached, PyTorch's archives get the process's extra files. */
void opscope__torch_follow_archives(bool is_attached);
/* NULL, or the reason why no files can be added. */
const char *opscope__torch_archives_fault(void);

#endif
