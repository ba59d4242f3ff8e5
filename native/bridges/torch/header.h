/* torch/header.h -- what PyTorch's own header says about the layout of its ranges and states. */
#ifndef OPSCOPE_BRIDGES_TORCH_HEADER_H
#define OPSCOPE_BRIDGES_TORCH_HEADER_H

#include <stdbool.h>
#include <stdint.h>

/* False if the file is a record_function.h that declares unexpected fields. True if
 * it cannot be read: many builds come without headers. */
bool opscope__torch_header_is_known(const char *path);
/* Whether it declares a thread's state (torch/thread_state.h) with the known fields alone. */
bool opscope__torch_header_declares_state(const char *path);
/* The digest of the declarations in such a text; 0 if they are not all there. Changes `text`. */
uint64_t opscope__torch_header_digest(char *text);

#endif
