/* torch_labels.h -- debug info that goes where PyTorch takes a thread's state. */
#ifndef OPSCOPE_BRIDGES_TORCH_LABELS_H
#define OPSCOPE_BRIDGES_TORCH_LABELS_H

#include <stdbool.h>

/* From now on. On a thread with nothing in PyTorch's chain, once; where PyTorch is not as assumed,
 * does nothing, and labels stay on the threads that set them. */
void opscope__torch_carry_labels(void);

/* Whether any thread has had labels since: else there is nothing to follow. Relaxed. */
extern bool opscope__torch_has_labels;
/* Gives this thread the labels that PyTorch has carried to it, or its own back. */
void opscope__torch_follow_labels(void);
/* The thread ends. */
void opscope__torch_forget_labels(void);

#endif
