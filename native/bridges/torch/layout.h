/* torch/layout.h -- where the fields of this PyTorch's at::RecordFunction are. */
#ifndef OPSCOPE_BRIDGES_TORCH_LAYOUT_H
#define OPSCOPE_BRIDGES_TORCH_LAYOUT_H

#include "bridges/torch/symbols.h"

/* More than any at::RecordFunction has. */
enum { OPSCOPE__TORCH_FUNCTION_BYTES = 512 };

/* Finds the layout with the functions of opscope__torch; NULL, or the reason why it failed. */
const char *opscope__torch_find_layout(struct opscope__torch_layout *out);
/* True if PyTorch's functions read these fields of a copy of `fn`, which has to be readable up to
 * the last of them. `has_schema` is the state of `fn`. */
bool opscope__torch_layout_fits(const struct opscope__torch_layout *layout,
                                const struct opscope__torch_function *fn, bool has_schema);

#endif
