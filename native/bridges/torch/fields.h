/* torch/fields.h -- compares the fields of a range of PyTorch, during the trial, with the layout.
 */
#ifndef OPSCOPE_BRIDGES_TORCH_FIELDS_H
#define OPSCOPE_BRIDGES_TORCH_FIELDS_H

#include "bridges/torch/symbols.h"

void opscope__torch_fields_begin(void);
void opscope__torch_fields_end(void);

/* True if that memory can be read, now; between begin and end. */
bool opscope__torch_is_readable(const void *address, size_t bytes);

/* NULL, or the first field that is elsewhere. PyTorch calls the first three when ranges start: an
 * operator's of the schema `aten::empty.memory_format`, a record_function's, a backward node's. The
 * node is that of the operator with this sequence number. */
const char *opscope__torch_operator_fault(const struct opscope__torch_function *fn);
const char *opscope__torch_block_fault(const struct opscope__torch_function *fn);
const char *opscope__torch_node_fault(const struct opscope__torch_function *fn,
                                      int64_t sequence_nr);
/* When the operator ends: it has one output, a tensor. */
const char *opscope__torch_outputs_fault(const struct opscope__torch_function *fn);
/* The sequence number of an operator; -1 if it cannot be read. */
int64_t opscope__torch_sequence_nr(const struct opscope__torch_function *fn);

#endif
