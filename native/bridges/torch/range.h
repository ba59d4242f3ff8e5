/* torch/range.h -- the functions that PyTorch calls: the start and the end of its ranges. */
#ifndef OPSCOPE_BRIDGES_TORCH_RANGE_H
#define OPSCOPE_BRIDGES_TORCH_RANGE_H

#include "bridges/torch/symbols.h"

struct opscope__torch_context **opscope__torch_range_start(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn);
/* The same if PyTorch has already drawn the range, with the probability of the only callback. */
struct opscope__torch_context **opscope__torch_range_start_drawn(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn);
/* The same where the layout of PyTorch's ranges is not known, for a range of that scope. Names,
 * overloads, counts and times; no inputs, outputs or sequence numbers. */
struct opscope__torch_context **opscope__torch_range_start_basic(
    struct opscope__torch_context **context, const struct opscope__torch_function *fn,
    uint8_t scope);
/* Entries of that: one for each scope, to be registered for that scope alone. */
extern const opscope__cxx_entry opscope__torch_range_entries_basic[OPSCOPE_SCOPE_COUNT];
void opscope__torch_range_end(const struct opscope__torch_function *fn,
                              struct opscope__torch_context *context);

#endif
