/* tensor/kernels/elementwise.c -- the dtypes, broadcasting and memory of elementwise operators. */
#include "tensor/kernels/elementwise.h"

#include <stdio.h>
#include <string.h>

#include "tensor/core/shape.h"
#include "tensor/kernels/convert.h"
#include "tensor/kernels/iterate.h"

enum { NUMBER_LIMIT = 2 };

/* ---- dtype ------------------------------------------------------------------------------------ */

enum category { NONE, BOOLS, INTEGERS, FLOATS };

static enum category category_of(opscope_dtype dtype)
{
    return opscope_dtype_is_floating(dtype) ? FLOATS : dtype == OPSCOPE_BOOL ? BOOLS : INTEGERS;
}

/* The operands of one priority: tensors with dimensions, tensors without, numbers. */
struct seen {
    enum category category;
    opscope_dtype dtype;
};

static void see(struct seen *seen, opscope_dtype dtype)
{
    seen->dtype = seen->category == NONE ? dtype : opscope_dtype_promote(seen->dtype, dtype);
    seen->category = category_of(seen->dtype);
}

static opscope_dtype dtype_of_number(const opscope_argument *number)
{
    return number->kind == OPSCOPE_ARGUMENT_FLOAT  ? OPSCOPE_FLOAT32
           : number->kind == OPSCOPE_ARGUMENT_BOOL ? OPSCOPE_BOOL
                                                   : OPSCOPE_INT64;
}

opscope_dtype opscope__dtype_of(const opscope_argument *operands, size_t count, uint32_t apart)
{
    struct seen seen[3] = {{NONE, OPSCOPE_BOOL}, {NONE, OPSCOPE_BOOL}, {NONE, OPSCOPE_BOOL}};
    for (size_t i = 0; i < count; i++) {
        if ((apart >> i & 1) != 0) {
            continue;
        }
        if (operands[i].kind == OPSCOPE_ARGUMENT_TENSOR) {
            const opscope_tensor *tensor = operands[i].as.tensor;
            see(&seen[tensor->dims > 0 ? 0 : 1], tensor->dtype);
        } else {
            see(&seen[2], dtype_of_number(&operands[i]));
        }
    }
    struct seen best = seen[0];
    for (int i = 1; i < 3; i++) {
        if (seen[i].category > best.category) {
            best = seen[i];
        }
    }
    return best.dtype;
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* True if the tensor's elements fill a memory range without gaps; its strides then give its
 * dimensions an order. */
static bool fills_memory(const opscope_tensor *tensor)
{
    int64_t last = 0;
    for (int i = 0; i < tensor->dims; i++) {
        if (opscope__strides(tensor)[i] < 0) {
            return false;
        }
        last += (opscope__sizes(tensor)[i] - 1) * opscope__strides(tensor)[i];
    }
    return last == tensor->count - 1 && !opscope__overlaps_itself(tensor);
}

int opscope__empty_like(const opscope_tensor *like, int dims, const int64_t *sizes,
                        opscope_dtype dtype, opscope_tensor **out)
{
    opscope_tensor *made;
    int status = opscope__tensor_empty(dims, sizes, dtype, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    if (like != NULL && !like->is_contiguous && like->dims == dims && like->count == made->count &&
        fills_memory(like)) {
        memcpy(opscope__strides(made), opscope__strides(like), (size_t)dims * sizeof *sizes);
        made->is_contiguous = false;
    }
    *out = made;
    return OPSCOPE_OK;
}

/* ---- computing ---------------------------------------------------------------------------------- */

static int find_sizes(const char *name, const opscope_argument *operands, size_t count, int *dims,
                      int64_t *sizes)
{
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        if (operands[i].kind != OPSCOPE_ARGUMENT_TENSOR) {
            continue;
        }
        const opscope_tensor *tensor = operands[i].as.tensor;
        if (is_first) {
            *dims = tensor->dims;
            memcpy(sizes, opscope__sizes(tensor), (size_t)tensor->dims * sizeof *sizes);
            is_first = false;
        } else {
            int status =
                opscope__broadcast(name, dims, sizes, tensor->dims, opscope__sizes(tensor));
            if (status != OPSCOPE_OK) {
                return status;
            }
        }
    }
    return is_first
               ? opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: one argument must be a tensor", name)
               : OPSCOPE_OK;
}

/* Makes the output: the target of an in-place call if it can be written directly, else a new
 * tensor. */
static int make_output(struct opscope__call *call, const opscope_argument *operands, size_t count,
                       int dims, const int64_t *sizes, opscope_dtype dtype, opscope_tensor **out)
{
    opscope_tensor *into = opscope__call_into(call);
    if (into != NULL && into->dtype == dtype && into->dims == dims &&
        memcmp(opscope__sizes(into), sizes, (size_t)dims * sizeof *sizes) == 0) {
        *out = opscope_tensor_retain(into);
        return OPSCOPE_OK;
    }
    const opscope_tensor *like = NULL;
    for (size_t i = 0; i < count && like == NULL; i++) {
        if (operands[i].kind == OPSCOPE_ARGUMENT_TENSOR && operands[i].as.tensor->dims == dims) {
            like = operands[i].as.tensor;
        }
    }
    return opscope__empty_like(like, dims, sizes, dtype, out);
}

static int fail_dtype(const char *name, const struct opscope__elementwise *spec,
                      opscope_dtype dtype)
{
    char known[128];
    size_t at = 0;
    for (int i = 0; i < OPSCOPE_DTYPE_COUNT && at < sizeof known; i++) {
        if (spec->loops[i] != NULL) {
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at > 0 ? ", " : "",
                                   opscope_dtype_name((opscope_dtype)i));
        }
    }
    return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s; it is for %s", name,
                               opscope_dtype_name(dtype), known);
}

int opscope__elementwise(struct opscope__call *call, const struct opscope__elementwise *spec,
                         const opscope_argument *operands, size_t operand_count,
                         const opscope_argument *numbers, size_t number_count, opscope_tensor **out)
{
    const char *name = opscope__call_name(call);
    opscope_dtype dtype = opscope__dtype_of(operands, operand_count, spec->apart);
    if (spec->needs_floats && !opscope_dtype_is_floating(dtype)) {
        dtype = OPSCOPE_FLOAT32;
    }
    for (size_t i = 0; i < number_count; i++) {
        if (numbers[i].kind == OPSCOPE_ARGUMENT_FLOAT && !opscope_dtype_is_floating(dtype)) {
            return opscope_tensor_fail(OPSCOPE_ERROR_TYPE,
                                       "%s: the factor %g is a float, but the tensors are %s", name,
                                       numbers[i].as.real, opscope_dtype_name(dtype));
        }
    }
    opscope__loop loop = spec->loops[dtype];
    if (loop == NULL) {
        return fail_dtype(name, spec, dtype);
    }
    int dims;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int status = find_sizes(name, operands, operand_count, &dims, sizes);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope_tensor *made = NULL;
    opscope_tensor *converted[OPSCOPE__OPERAND_LIMIT] = {NULL};
    uint64_t elements[OPSCOPE__OPERAND_LIMIT], user[NUMBER_LIMIT] = {0};
    status = make_output(call, operands, operand_count, dims, sizes,
                         spec->gives_bool ? OPSCOPE_BOOL : dtype, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct opscope__iterator it;
    opscope__iterator_start(&it, dims, sizes);
    opscope__iterator_add(&it, made);
    for (size_t i = 0; i < operand_count && status == OPSCOPE_OK; i++) {
        opscope_dtype wanted = (spec->apart >> i & 1) != 0 ? OPSCOPE_BOOL : dtype;
        opscope_tensor *tensor = operands[i].as.tensor;
        if (operands[i].kind != OPSCOPE_ARGUMENT_TENSOR) {
            opscope__number_as(&operands[i], wanted, &elements[i]);
            opscope__iterator_add_value(&it, &elements[i]);
            continue;
        }
        if (tensor->dtype != wanted) {
            status = opscope__convert(tensor, wanted, &converted[i]);
            tensor = converted[i];
        }
        if (status == OPSCOPE_OK) {
            opscope__iterator_add(&it, tensor);
        }
    }
    for (size_t i = 0; i < number_count; i++) {
        opscope__number_as(&numbers[i], dtype, &user[i]);
    }
    if (status == OPSCOPE_OK) {
        opscope__iterate(&it, loop, user, spec->cost);
    }
    for (size_t i = 0; i < operand_count; i++) {
        opscope_tensor_release(converted[i]);
    }
    return opscope__tensor_finish(status, made, out);
}
