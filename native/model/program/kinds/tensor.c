/* model/program/kinds/tensor.c -- what is asked of tensors, and tensors made of numbers. */
#include <string.h>

#include "model/program/kinds/kinds.h"
#include "opscope/status.h"
#include "tensor/kernels/convert.h"

int opscope__tensor_len(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    const opscope_tensor *tensor = inputs[0].as.tensor;
    if (opscope_tensor_dims(tensor) == 0) {
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "len() of a tensor without dimensions");
    }
    *out = opscope__value_int(opscope_tensor_sizes(tensor)[0]);
    return OPSCOPE_OK;
}

int opscope__tensor_dim(struct opscope__heap *heap, const struct opscope__value *inputs,
                        struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_int(opscope_tensor_dims(inputs[0].as.tensor));
    return OPSCOPE_OK;
}

int opscope__tensor_numel(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_int(opscope_tensor_count(inputs[0].as.tensor));
    return OPSCOPE_OK;
}

int opscope__tensor_is(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_bool(inputs[0].as.tensor == inputs[1].as.tensor);
    return OPSCOPE_OK;
}

int opscope__tensor_sizes(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    const opscope_tensor *tensor = inputs[0].as.tensor;
    size_t dims = (size_t)opscope_tensor_dims(tensor);
    struct opscope__sequence *sizes = opscope__sequence_new(heap, dims);
    if (sizes == NULL) {
        return OPSCOPE_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < dims; i++) {
        sizes->items[sizes->count++] = opscope__value_int(opscope_tensor_sizes(tensor)[i]);
    }
    *out = opscope__value_list(sizes);
    return OPSCOPE_OK;
}

int opscope__tensor_size(struct opscope__heap *heap, const struct opscope__value *inputs,
                         struct opscope__value *out)
{
    (void)heap;
    const opscope_tensor *tensor = inputs[0].as.tensor;
    int64_t dims = opscope_tensor_dims(tensor), dim = inputs[1].as.integer;
    if (dim < -dims || dim >= dims) {
        return opscope_tensor_fail(OPSCOPE_ERROR_INDEX,
                                   "dimension %lld of a tensor of %lld dimensions", (long long)dim,
                                   (long long)dims);
    }
    *out = opscope__value_int(opscope_tensor_sizes(tensor)[dim < 0 ? dim + dims : dim]);
    return OPSCOPE_OK;
}

int opscope__tensor_dtype(struct opscope__heap *heap, const struct opscope__value *inputs,
                          struct opscope__value *out)
{
    (void)heap;
    *out = opscope__value_dtype(opscope_tensor_dtype(inputs[0].as.tensor));
    return OPSCOPE_OK;
}

/* ---- a tensor of numbers ---------------------------------------------------------------------- */

struct filling {
    int dims;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    opscope_dtype dtype; /* of the elements as they are written */
    size_t element_bytes;
    char *next;
};

/* The lengths of the first lists on each level; the others have to be equal. */
static int measure(const struct opscope__value *value, struct filling *out)
{
    out->dims = 0;
    while (value->kind == OPSCOPE__VALUE_LIST) {
        if (out->dims == OPSCOPE_DIM_LIMIT) {
            return opscope_tensor_fail(OPSCOPE_ERROR_VALUE, "more than %d levels of lists",
                                       OPSCOPE_DIM_LIMIT);
        }
        const struct opscope__sequence *list = value->as.sequence;
        out->sizes[out->dims++] = (int64_t)list->count;
        if (list->count == 0) {
            break;
        }
        value = &list->items[0];
    }
    out->dtype = value->kind == OPSCOPE__VALUE_BOOL  ? OPSCOPE_BOOL
                 : value->kind == OPSCOPE__VALUE_INT ? OPSCOPE_INT64
                                                     : OPSCOPE_FLOAT32;
    return OPSCOPE_OK;
}

static int write_integer(struct opscope__heap *heap, const struct opscope__value *value,
                         opscope_dtype dtype, opscope_argument *out)
{
    struct opscope__value whole = *value;
    /* 1.9 becomes 1, as in PyTorch. */
    int status = value->kind == OPSCOPE__VALUE_FLOAT ? opscope__int_of_float(heap, value, &whole)
                                                     : OPSCOPE_OK;
    *out = (opscope_argument){.kind = OPSCOPE_ARGUMENT_INT, .as.integer = whole.as.integer};
    if (status == OPSCOPE_OK && opscope__check_number("tensor", out, dtype) != OPSCOPE_OK) {
        return opscope_tensor_fail(OPSCOPE_ERROR_OVERFLOW, "%lld does not fit into %s",
                                   (long long)whole.as.integer, opscope_dtype_name(dtype));
    }
    return status;
}

static int write_number(struct opscope__heap *heap, const struct opscope__value *value,
                        struct filling *filling)
{
    bool is_float = value->kind == OPSCOPE__VALUE_FLOAT;
    opscope_argument number = {.kind = OPSCOPE_ARGUMENT_FLOAT, .as.real = value->as.real};
    int status = OPSCOPE_OK;
    if (filling->dtype == OPSCOPE_BOOL) {
        bool is_true = is_float ? value->as.real != 0 : value->as.integer != 0;
        number = (opscope_argument){.kind = OPSCOPE_ARGUMENT_BOOL, .as.integer = is_true};
    } else if (!opscope_dtype_is_floating(filling->dtype)) {
        status = write_integer(heap, value, filling->dtype, &number);
    } else if (!is_float) {
        number.as.real = (double)value->as.integer;
    }
    if (status == OPSCOPE_OK) {
        char element[8];
        opscope__number_as(&number, filling->dtype, element);
        memcpy(filling->next, element, filling->element_bytes);
        filling->next += filling->element_bytes;
    }
    return status;
}

/* Whether all lists of a level have one length. No deeper than there are dimensions. */
static int check_level(const struct opscope__value *value, int dim, const struct filling *filling)
{
    if (dim == filling->dims) {
        return OPSCOPE_OK;
    }
    const struct opscope__sequence *list = value->as.sequence;
    if ((int64_t)list->count != filling->sizes[dim]) {
        return opscope_tensor_fail(OPSCOPE_ERROR_VALUE,
                                   "lists of lengths %lld and %zu at dimension %d",
                                   (long long)filling->sizes[dim], list->count, dim);
    }
    int status = OPSCOPE_OK;
    for (size_t i = 0; status == OPSCOPE_OK && i < list->count; i++) {
        status = check_level(&list->items[i], dim + 1, filling);
    }
    return status;
}

static int write_level(struct opscope__heap *heap, const struct opscope__value *value, int dim,
                       struct filling *filling)
{
    if (dim == filling->dims) {
        return write_number(heap, value, filling);
    }
    const struct opscope__sequence *list = value->as.sequence;
    int status = OPSCOPE_OK;
    for (size_t i = 0; status == OPSCOPE_OK && i < list->count; i++) {
        status = write_level(heap, &list->items[i], dim + 1, filling);
    }
    return status;
}

int opscope__tensor_of(struct opscope__heap *heap, const struct opscope__value *inputs,
                       struct opscope__value *out)
{
    struct filling filling;
    int status = measure(&inputs[0], &filling);
    if (status == OPSCOPE_OK) {
        status = check_level(&inputs[0], 0, &filling);
    }
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope_dtype wanted = inputs[1].kind == OPSCOPE__VALUE_DTYPE
                               ? (opscope_dtype)inputs[1].as.integer
                               : filling.dtype;
    bool is_half = wanted == OPSCOPE_FLOAT16 || wanted == OPSCOPE_BFLOAT16;
    filling.dtype = is_half ? OPSCOPE_FLOAT32 : wanted;
    filling.element_bytes = opscope_dtype_bytes(filling.dtype);
    opscope_tensor *made;
    status = opscope_tensor_empty(filling.dims, filling.sizes, filling.dtype, NULL, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    filling.next = opscope_tensor_data(made);
    status = write_level(heap, &inputs[0], 0, &filling);
    if (status == OPSCOPE_OK && is_half) {
        opscope_tensor *wide = made;
        status = opscope__convert(wide, wanted, &made);
        opscope_tensor_release(status == OPSCOPE_OK ? wide : NULL);
    }
    if (status != OPSCOPE_OK) {
        opscope_tensor_release(made);
        return status;
    }
    *out = opscope__value_tensor(made);
    return OPSCOPE_OK;
}
