/* torch/ivalue.h -- c10::IValue: PyTorch's inputs and outputs of ranges. */
#ifndef OPSCOPE_BRIDGES_TORCH_IVALUE_H
#define OPSCOPE_BRIDGES_TORCH_IVALUE_H

#include "bridges/torch/symbols.h"

/* Eight bytes of payload, then a tag. */
struct opscope__torch_value {
    union {
        int64_t integer;
        double real;
        bool boolean;
        void *object;
    } payload;
    uint32_t tag;
    uint32_t padding;
};

/* Tags that all known versions agree on. Those after OPSCOPE__TORCH_INT changed once, in 2.9. */
enum {
    OPSCOPE__TORCH_NONE = 0,
    OPSCOPE__TORCH_TENSOR = 1,
    OPSCOPE__TORCH_DOUBLE = 3,
    OPSCOPE__TORCH_INT = 5
};

static inline const struct opscope__torch_value *opscope__torch_inputs(
    const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(struct opscope__torch_value *, fn, opscope__torch.layout.inputs);
}

static inline size_t opscope__torch_input_count(const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(size_t, fn, opscope__torch.layout.input_count);
}

/* The outputs are a std::vector. */
static inline const struct opscope__torch_value *opscope__torch_outputs_begin(
    const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(struct opscope__torch_value *, fn, opscope__torch.layout.outputs);
}

static inline const struct opscope__torch_value *opscope__torch_outputs_end(
    const struct opscope__torch_function *fn)
{
    return OPSCOPE__TORCH_FIELD(struct opscope__torch_value *, fn,
                                opscope__torch.layout.outputs + sizeof(void *));
}

#endif
