/* tensor/kernels/iterator.c -- puts operands of any strides into the order of their memory. */
#include "tensor/kernels/iterator.h"

#include <string.h>

#include "tensor/core/sizes.h"

void opscope__iterator_start(struct opscope__iterator *it, int dims, const int64_t *sizes)
{
    it->dims = dims;
    it->operands = 0;
    it->is_even = true;
    it->count = opscope__count_of(dims, sizes);
    memcpy(it->sizes, sizes, (size_t)dims * sizeof *sizes);
}

void opscope__iterator_add(struct opscope__iterator *it, const opscope_tensor *tensor)
{
    int operand = it->operands++;
    int64_t item = (int64_t)opscope_dtype_bytes(tensor->dtype);
    it->data[operand] = tensor->data;
    it->item[operand] = item;
    it->is_even &= tensor->is_contiguous && tensor->count == it->count;
    int missing = it->dims - tensor->dims;
    for (int i = 0; i < it->dims; i++) {
        int from = i - missing;
        /* The strides of a tensor without elements are meaningless, and may overflow when counted
         * in bytes. */
        bool moves = from >= 0 && opscope__sizes(tensor)[from] > 1 && tensor->count > 0;
        it->strides[i][operand] = moves ? opscope__strides(tensor)[from] * item : 0;
    }
}

void opscope__iterator_add_value(struct opscope__iterator *it, void *value)
{
    int operand = it->operands++;
    it->data[operand] = value;
    it->item[operand] = 0;
    for (int i = 0; i < it->dims; i++) {
        it->strides[i][operand] = 0;
    }
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

/* True if dimension a should be inside b: its steps are smaller in the first operand where the two
 * differ. */
static bool belongs_inside(const struct opscope__iterator *it, int a, int b)
{
    for (int i = 0; i < it->operands; i++) {
        int64_t step_a = magnitude(it->strides[a][i]), step_b = magnitude(it->strides[b][i]);
        if (step_a != 0 && step_b != 0 && step_a != step_b) {
            return step_a < step_b;
        }
    }
    return false;
}

void opscope__iterator_swap(struct opscope__iterator *it, int a, int b)
{
    int64_t size = it->sizes[a];
    it->sizes[a] = it->sizes[b];
    it->sizes[b] = size;
    int64_t strides[OPSCOPE__OPERAND_LIMIT];
    memcpy(strides, it->strides[a], sizeof strides);
    memcpy(it->strides[a], it->strides[b], sizeof strides);
    memcpy(it->strides[b], strides, sizeof strides);
}

static bool can_merge(const struct opscope__iterator *it, int outer, int inner)
{
    for (int i = 0; i < it->operands; i++) {
        if (it->strides[outer][i] != it->strides[inner][i] * it->sizes[inner]) {
            return false;
        }
    }
    return true;
}

static void drop_ones(struct opscope__iterator *it)
{
    int kept = 0;
    for (int i = 0; i < it->dims; i++) {
        if (it->sizes[i] != 1) {
            if (kept != i) {
                opscope__iterator_swap(it, kept, i);
            }
            kept++;
        }
    }
    it->dims = kept;
}

void opscope__iterator_merge(struct opscope__iterator *it)
{
    drop_ones(it);
    for (int i = 1; i < it->dims; i++) {
        for (int j = i; j > 0 && belongs_inside(it, j - 1, j); j--) {
            opscope__iterator_swap(it, j - 1, j);
        }
    }
    int last = 0;
    for (int i = 1; i < it->dims; i++) {
        if (can_merge(it, last, i)) {
            it->sizes[last] *= it->sizes[i];
            memcpy(it->strides[last], it->strides[i], sizeof it->strides[0]);
        } else if (++last != i) {
            it->sizes[last] = it->sizes[i];
            memcpy(it->strides[last], it->strides[i], sizeof it->strides[0]);
        }
    }
    it->dims = it->dims > 0 ? last + 1 : 0;
}
