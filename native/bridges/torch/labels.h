/* torch/labels.h -- carries debug info wherever PyTorch carries a thread's state. */
#ifndef OPSCOPE_BRIDGES_TORCH_LABELS_H
#define OPSCOPE_BRIDGES_TORCH_LABELS_H

#include <stdbool.h>

/* Enables this; NULL, or the reason why labels stay on the threads that set them. Call it on a
 * thread whose PyTorch chain is empty; after the first success it does nothing. */
const char *opscope__torch_carry_labels(void);

/* True if any thread has had labels since; otherwise there is nothing to follow. Relaxed. */
extern bool opscope__torch_has_labels;
/* Gives this thread the labels that PyTorch has carried to it, or restores its own. */
void opscope__torch_follow_labels(void);
/* Call it when the thread ends. */
void opscope__torch_forget_labels(void);

#endif
