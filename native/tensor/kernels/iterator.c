/* tensor/iterator.c -- walking operands of any strides together. */
#include "tensor/iterator.h"

#include <string.h>

#include "tensor/parallel.h"
#include "tensor/shape.h"
#include "tensor/tiles.h"

/* Elements: whole vectors of every width, unrolled or not. */
enum { WHOLE_VECTORS = 64 };

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
        /* Without elements strides mean nothing, and may be too large to be counted in bytes. */
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

/* Whether dimension a should be walked inside of b: its steps are smaller, by the first operand
 * that has an opinion. */
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

struct walk {
    const struct opscope__iterator *it;
    opscope__loop loop;
    void *user;
};

/* Where a piece that is to begin at element `place` does: whole vectors of the inner loop behind a
 * row's begin. A loop's last elements, too few for a vector, may differ from the others in their
 * last bit; they are the same ones however many threads there are. */
static int64_t piece_begin(const struct opscope__iterator *it, int64_t place)
{
    return place - place % it->sizes[it->dims - 1] % WHOLE_VECTORS;
}

/* Elements begin to end in the order of the merged dimensions. */
static void walk(int64_t begin, int64_t end, void *arg)
{
    const struct walk *all = arg;
    const struct opscope__iterator *it = all->it;
    int inner = it->dims - 1;
    begin = piece_begin(it, begin);
    end = piece_begin(it, end);
    int64_t at[OPSCOPE_DIM_LIMIT];
    char *data[OPSCOPE__OPERAND_LIMIT];
    memcpy(data, it->data, sizeof data);
    int64_t rest = begin;
    for (int i = inner; i >= 0; i--) {
        at[i] = rest % it->sizes[i];
        rest /= it->sizes[i];
        for (int j = 0; j < it->operands; j++) {
            data[j] += at[i] * it->strides[i][j];
        }
    }
    for (int64_t done = begin; done < end;) {
        int64_t run = it->sizes[inner] - at[inner];
        run = run < end - done ? run : end - done;
        all->loop(data, it->strides[inner], run, all->user);
        done += run;
        if (done == end) {
            return;
        }
        for (int j = 0; j < it->operands; j++) {
            data[j] -= at[inner] * it->strides[inner][j];
        }
        at[inner] = 0;
        for (int i = inner - 1; i >= 0; i--) {
            at[i]++;
            for (int j = 0; j < it->operands; j++) {
                data[j] += it->strides[i][j];
            }
            if (at[i] < it->sizes[i]) {
                break;
            }
            for (int j = 0; j < it->operands; j++) {
                data[j] -= it->sizes[i] * it->strides[i][j];
            }
            at[i] = 0;
        }
    }
}

void opscope__iterate(struct opscope__iterator *it, opscope__loop loop, void *user, int64_t cost)
{
    if (it->count == 0) {
        return;
    }
    if (it->count == 1) {
        loop(it->data, it->item, 1, user);
        return;
    }
    if (it->is_even) {
        it->dims = 1;
        it->sizes[0] = it->count;
        memcpy(it->strides[0], it->item, sizeof it->item);
    } else {
        opscope__iterator_merge(it);
        if (opscope__tiles_gain(it)) {
            opscope__iterate_tiles(it, loop, user, cost);
            return;
        }
    }
    struct walk all = {it, loop, user};
    if (it->count * cost < 2 * OPSCOPE__GRAIN) {
        walk(0, it->count, &all);
    } else {
        opscope__parallel(it->count, OPSCOPE__GRAIN / cost, walk, &all);
    }
}
