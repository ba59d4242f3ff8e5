/* torch_values.c -- inputs and outputs of PyTorch's ranges, for callbacks that ask.
 *
 * Both are rows of c10::IValue: eight bytes of payload, then a tag. A tensor's payload is an
 * at::Tensor in place, of which PyTorch's C interface for compiled models (aoti_torch_*) tells
 * shape and type. Numbers are taken as they are; of lists, texts and the rest only that they are
 * there.
 */
#include "opscope/torch.h"

#include "bridges/torch_range.h"
#include "record/shape.h"

/* The first of the tags; PyTorch's ATen/core/ivalue.h lists them. */
enum tag { TAG_NONE = 0, TAG_TENSOR = 1, TAG_DOUBLE = 3, TAG_INT = 5, TAG_BOOL = 10 };

struct ivalue {
    union {
        int64_t integer;
        double real;
        bool boolean;
        void *object;
    } payload;
    uint32_t tag;
    uint32_t padding;
};

static opscope_value value_of(const struct ivalue *from)
{
    opscope_value value = {.kind = OPSCOPE_VALUE_NONE};
    switch (from->tag) {
    case TAG_NONE:
        break;
    case TAG_TENSOR:
        value.kind = OPSCOPE_VALUE_OBJECT;
        value.type = "torch.tensor";
        value.as.object = (void *)(uintptr_t)&from->payload;
        break;
    case TAG_DOUBLE:
        value.kind = OPSCOPE_VALUE_FLOAT;
        value.as.real = from->payload.real;
        break;
    case TAG_INT:
        value.kind = OPSCOPE_VALUE_INT;
        value.as.integer = from->payload.integer;
        break;
    case TAG_BOOL:
        value.kind = OPSCOPE_VALUE_BOOL;
        value.as.integer = from->payload.boolean;
        break;
    default:
        value.kind = OPSCOPE_VALUE_OBJECT;
        value.type = "torch.other";
        value.as.object = (void *)(uintptr_t)from;
    }
    return value;
}

static size_t box(const struct ivalue *row, size_t count, opscope_value *values, size_t capacity)
{
    for (size_t i = 0; i < count && i < capacity; i++) {
        values[i] = value_of(&row[i]);
    }
    return count;
}

size_t opscope__torch_box_inputs(void *fn, opscope_value *values, size_t capacity)
{
    const struct opscope__torch_layout *layout = &opscope__torch.layout;
    return box(OPSCOPE__TORCH_FIELD(struct ivalue *, fn, layout->inputs),
               OPSCOPE__TORCH_FIELD(size_t, fn, layout->input_count), values, capacity);
}

size_t opscope__torch_box_outputs(void *fn, opscope_value *values, size_t capacity)
{
    const size_t begin = opscope__torch.layout.outputs, end = begin + sizeof(void *);
    const struct ivalue *first = OPSCOPE__TORCH_FIELD(struct ivalue *, fn, begin);
    const struct ivalue *last = OPSCOPE__TORCH_FIELD(struct ivalue *, fn, end);
    return box(first, (size_t)(last - first), values, capacity);
}

int opscope_torch_tensor_read(const void *tensor, opscope_torch_tensor *out)
{
    opscope_torch_tensor found = {0};
    bool is_defined = false;
    if (opscope__torch.tensor_is_defined == NULL ||
        opscope__torch.tensor_is_defined(tensor, &is_defined) != 0) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    if (!is_defined) {
        return OPSCOPE_ERR_NOT_FOUND;
    }
    if (opscope__torch.tensor_dtype(tensor, &found.dtype) != 0 ||
        opscope__torch.tensor_device_type(tensor, &found.device_type) != 0 ||
        opscope__torch.tensor_dim(tensor, &found.dim) != 0 ||
        opscope__torch.tensor_sizes(tensor, &found.sizes) != 0) {
        return OPSCOPE_ERR_UNSUPPORTED;
    }
    *out = found;
    return OPSCOPE_OK;
}

static int shape_of(const void *object, int64_t *sizes)
{
    opscope_torch_tensor tensor;
    if (opscope_torch_tensor_read(object, &tensor) != OPSCOPE_OK) {
        return -1;
    }
    for (int64_t i = 0; i < tensor.dim && i < OPSCOPE__RANK_LIMIT; i++) {
        sizes[i] = tensor.sizes[i];
    }
    return (int)tensor.dim;
}

void opscope__torch_register_shapes(void)
{
    (void)opscope__shape_register("torch.tensor", shape_of);
}
