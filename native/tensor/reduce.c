/* tensor/reduce.c -- walking the dimensions of a reduction: those that stay, and those folded. */
#include "tensor/reduce.h"

#include "tensor/iterator.h"
#include "tensor/parallel.h"

enum { TILE = 1024, PART_LIMIT = 16 };

/* Dimensions of one kind, outermost first, merged; strides in bytes. */
struct group {
    int dims;
    int64_t count;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int64_t in[OPSCOPE_DIM_LIMIT];
    int64_t out[OPSCOPE_DIM_LIMIT];
};

struct fold {
    const struct opscope__reduction *reduction;
    struct group kept, folded;
    const char *data;
    char *result;
    int64_t item_out;
    bool by_columns;
    uint64_t *parts; /* one tile of accumulators for each part; only where the folded are split */
    int64_t part_count;
};

int opscope__reduced_sizes(const opscope_tensor *self, uint32_t set, bool keep, int64_t *sizes)
{
    int dims = 0;
    for (int i = 0; i < self->dims; i++) {
        if ((set >> i & 1) == 0) {
            sizes[dims++] = opscope__sizes(self)[i];
        } else if (keep) {
            sizes[dims++] = 1;
        }
    }
    return dims;
}

/* The dimensions of `self` that are in `set` (or, with flip, are not), in the order of memory and merged
 * by the iterator; operand 0 is the input, operand 1 the output. */
static void make_group(struct group *group, const opscope_tensor *self, uint32_t set, bool flip,
                       int64_t item_out)
{
    struct opscope__iterator it;
    int64_t item = (int64_t)opscope_dtype_bytes(self->dtype);
    int64_t out[OPSCOPE_DIM_LIMIT], next = item_out;
    for (int i = self->dims - 1; i >= 0; i--) {
        out[i] = flip ? next : 0;
        next *= (set >> i & 1) == 0 ? opscope__sizes(self)[i] : 1;
    }
    int dims = 0;
    group->count = 1;
    it.operands = 2;
    for (int i = 0; i < self->dims; i++) {
        if (((set >> i & 1) != 0) != flip) {
            it.sizes[dims] = opscope__sizes(self)[i];
            it.strides[dims][0] = opscope__strides(self)[i] * item;
            it.strides[dims][1] = out[i];
            group->count *= it.sizes[dims++];
        }
    }
    it.dims = dims;
    opscope__iterator_merge(&it);
    group->dims = it.dims;
    for (int i = 0; i < it.dims; i++) {
        group->sizes[i] = it.sizes[i];
        group->in[i] = it.strides[i][0];
        group->out[i] = it.strides[i][1];
    }
}

/* The offsets of place `index` of a group, of its first `dims` dimensions. */
static int64_t offset_of(const struct group *group, int dims, int64_t index, int64_t *out)
{
    int64_t in = 0;
    *out = 0;
    for (int i = dims - 1; i >= 0; i--) {
        int64_t at = index % group->sizes[i];
        index /= group->sizes[i];
        in += at * group->in[i];
        *out += at * group->out[i];
    }
    return in;
}

static void start_all(const struct fold *fold, uint64_t *accumulators, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        accumulators[i] = fold->reduction->start;
    }
}

/* Inner dimension of a group: its size and stride; one element where it has none. */
static int64_t inner_of(const struct group *group, int64_t *stride)
{
    *stride = group->dims > 0 ? group->in[group->dims - 1] : 0;
    return group->dims > 0 ? group->sizes[group->dims - 1] : 1;
}

/* Folds runs `begin` to `end` of the folded dimensions into one accumulator. */
static void fold_row(const struct fold *fold, const char *data, int64_t begin, int64_t end,
                     uint64_t *accumulator)
{
    int64_t stride, unused, inner = inner_of(&fold->folded, &stride);
    for (int64_t i = begin; i < end;) {
        int64_t left = inner - i % inner;
        int64_t run = left < end - i ? left : end - i;
        const char *at = data + offset_of(&fold->folded, fold->folded.dims, i, &unused);
        fold->reduction->row(accumulator, at, stride, run);
        i += run;
    }
}

/* Outputs begin to end, each a row. */
static void rows(int64_t begin, int64_t end, void *arg)
{
    const struct fold *fold = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t out;
        const char *data = fold->data + offset_of(&fold->kept, fold->kept.dims, i, &out);
        uint64_t accumulator;
        start_all(fold, &accumulator, 1);
        fold_row(fold, data, 0, fold->folded.count, &accumulator);
        fold->reduction->finish(fold->result + out, 0, &accumulator, 1, fold->folded.count);
    }
}

/* A run of at most TILE outputs along the inner kept dimension, folded places begin to end. */
static void fold_tile(const struct fold *fold, const char *data, int64_t count, int64_t begin,
                      int64_t end, uint64_t *accumulators)
{
    int64_t stride, unused;
    inner_of(&fold->kept, &stride);
    for (int64_t i = begin; i < end; i++) {
        const char *at = data + offset_of(&fold->folded, fold->folded.dims, i, &unused);
        fold->reduction->column(accumulators, at, stride, count);
    }
}

/* Tiles begin to end; each is a stretch of the inner kept dimension. */
static void tiles(int64_t begin, int64_t end, void *arg)
{
    const struct fold *fold = arg;
    uint64_t accumulators[TILE];
    int64_t stride, inner = inner_of(&fold->kept, &stride);
    int64_t per_run = (inner + TILE - 1) / TILE;
    for (int64_t i = begin; i < end; i++) {
        int64_t out, first = i % per_run * TILE;
        int64_t count = inner - first < TILE ? inner - first : TILE;
        const char *data =
            fold->data + offset_of(&fold->kept, fold->kept.dims - 1, i / per_run, &out);
        int64_t step = fold->kept.out[fold->kept.dims - 1];
        start_all(fold, accumulators, count);
        fold_tile(fold, data + first * stride, count, 0, fold->folded.count, accumulators);
        fold->reduction->finish(fold->result + out + first * step, step, accumulators, count,
                                fold->folded.count);
    }
}

/* Few outputs, much to fold: each part folds its share of the one output's run. */
static void parts(int64_t begin, int64_t end, void *arg)
{
    const struct fold *fold = arg;
    for (int64_t i = begin; i < end; i++) {
        start_all(fold, &fold->parts[i * 8], 1);
        fold_row(fold, fold->data, fold->folded.count * i / fold->part_count,
                 fold->folded.count * (i + 1) / fold->part_count, &fold->parts[i * 8]);
    }
}

/* The number of parts depends on the work alone, so that the result does not depend on the threads. */
static void fold_in_parts(struct fold *fold)
{
    uint64_t accumulators[PART_LIMIT * 8]; /* each on a cache line of its own */
    fold->parts = accumulators;
    fold->part_count = PART_LIMIT;
    opscope__parallel(PART_LIMIT, 1, parts, fold);
    for (int64_t i = 1; i < PART_LIMIT; i++) {
        fold->reduction->join(&accumulators[0], &accumulators[i * 8], 1);
    }
    fold->reduction->finish(fold->result, 0, accumulators, 1, fold->folded.count);
}

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

static void run(struct fold *fold)
{
    int64_t row_stride, column_stride;
    inner_of(&fold->folded, &row_stride);
    int64_t width = inner_of(&fold->kept, &column_stride);
    int64_t work = fold->kept.count * fold->folded.count * fold->reduction->cost;
    fold->by_columns = fold->kept.dims > 0 && width > 1 && fold->folded.count > 1 &&
                       magnitude(column_stride) < magnitude(row_stride);
    if (fold->by_columns) {
        int64_t count = fold->kept.count / width * ((width + TILE - 1) / TILE);
        opscope__parallel(count, work < 2 * OPSCOPE__GRAIN ? count : 1, tiles, fold);
    } else if (fold->kept.count == 1 && work >= 2 * OPSCOPE__GRAIN) {
        fold_in_parts(fold);
    } else {
        int64_t per_row = fold->folded.count * fold->reduction->cost + 1;
        opscope__parallel(fold->kept.count, OPSCOPE__GRAIN / per_row + 1, rows, fold);
    }
}

int opscope__reduce(const struct opscope__reduction *reduction, const opscope_tensor *self,
                    uint32_t set, bool keep, opscope_dtype dtype, opscope_tensor **out)
{
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    opscope_tensor *made;
    int dims = opscope__reduced_sizes(self, set, keep, sizes);
    int status = opscope__tensor_empty(dims, sizes, dtype, &made);
    if (status != OPSCOPE_OK) {
        return status;
    }
    struct fold fold = {.reduction = reduction,
                        .data = self->data,
                        .result = made->data,
                        .item_out = (int64_t)opscope_dtype_bytes(dtype)};
    make_group(&fold.folded, self, set, false, fold.item_out);
    make_group(&fold.kept, self, set, true, fold.item_out);
    if (made->count > 0) {
        run(&fold);
    }
    *out = made;
    return OPSCOPE_OK;
}
