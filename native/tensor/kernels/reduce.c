/* tensor/kernels/reduce.c -- iterates over the dimensions of a reduction: the kept ones and the
 * folded ones. */
#include "tensor/kernels/reduce.h"

#include "tensor/kernels/iterator.h"
#include "tensor/kernels/parallel.h"

enum {
    TILE = 2048,       /* accumulators that stay in the first-level cache, half of 32 KiB */
    WIDE = 128,        /* columns that keep the vector units busy */
    SHORT = 32,        /* a row too short for a call */
    PART_WORK = 16384, /* additions in a part */
    PART_LENGTH = 256, /* minimum of folded positions in a part, because joining has a cost */
    EVEN = 64, /* parts begin at multiples of this: whole cache lines, whole blocks of rows */
    CALL = 16, /* cost of the call for a piece, in additions */
    PIECE_LIMIT = 64,
    ROWS = 64 / sizeof(uint64_t) /* of a run: the accumulators in a cache line */
};

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Dimensions of one kind, outermost first, merged; strides in bytes. */
struct group {
    int dims;
    int64_t count;
    int64_t sizes[OPSCOPE_DIM_LIMIT];
    int64_t in[OPSCOPE_DIM_LIMIT];
    int64_t out[OPSCOPE_DIM_LIMIT];
};

/* Outputs come in runs along the inner kept dimension: TILE of them, or ROWS if rows are folded. If
 * there are few runs, the input of a run is split into parts. */
struct fold {
    const struct opscope__reduction *reduction;
    struct group kept, folded;
    const char *data;
    char *result;
    bool by_columns;
    int64_t runs, parts;
    int64_t run_limit; /* maximum number of outputs in a run */
    uint64_t *partial; /* `run_limit` accumulators for each part and run */
};

struct run {
    const char *data;
    char *out;
    int64_t count, stride,
        step; /* number of outputs; bytes between their inputs, and between outputs */
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

/* The dimensions of `self` in `set` (with flip: outside of it), in the order of memory and merged
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

/* The offsets of position `index` in the first `dims` dimensions of a group. */
static int64_t offset_of(const struct group *group, int dims, int64_t index, int64_t *out)
{
    int64_t in = 0;
    *out = 0;
    for (int i = dims - 1; i >= 0 && index > 0; i--) {
        int64_t at = i > 0 ? index % group->sizes[i] : index;
        index = i > 0 ? index / group->sizes[i] : 0;
        in += at * group->in[i];
        *out += at * group->out[i];
    }
    return in;
}

/* The size and stride of a group's inner dimension; one element if it has none. */
static int64_t inner_of(const struct group *group, int64_t *stride)
{
    *stride = group->dims > 0 ? group->in[group->dims - 1] : 0;
    return group->dims > 0 ? group->sizes[group->dims - 1] : 1;
}

static struct run run_at(const struct fold *fold, int64_t index)
{
    const struct group *kept = &fold->kept;
    struct run run = {fold->data, fold->result, 1, 0, 0};
    int64_t out, first = 0;
    int outer = kept->dims - 1;
    if (outer >= 0) {
        int64_t inner = inner_of(kept, &run.stride);
        int64_t per_row = (inner + fold->run_limit - 1) / fold->run_limit;
        first = index % per_row * fold->run_limit;
        index /= per_row;
        run.count = least(inner - first, fold->run_limit);
        run.step = kept->out[outer];
    }
    run.data += offset_of(kept, outer, index, &out) + first * run.stride;
    run.out += out + first * run.step;
    return run;
}

/* How many rows of a few columns, contiguous in memory, can be treated as one wider row. */
static int64_t widening(const struct run *run, int64_t next)
{
    return run->count <= WIDE / 2 && next == run->count * run->stride ? WIDE / run->count : 1;
}

/* Folds positions `begin` to `end` of the folded dimensions. There is room for TILE accumulators if
 * the run is one of columns. */
static void fold_run(const struct fold *fold, const struct run *run, int64_t begin, int64_t end,
                     uint64_t *accumulators)
{
    const struct opscope__reduction *reduction = fold->reduction;
    int64_t next, unused, inner = inner_of(&fold->folded, &next);
    int64_t wide = fold->by_columns ? widening(run, next) : 1;
    for (int64_t i = 0; i < run->count * wide; i++) {
        accumulators[i] = reduction->start;
    }
    for (int64_t i = begin, some; i < end; i += some) {
        int64_t left = i < inner ? inner - i : inner - i % inner;
        some = left < end - i ? left : end - i;
        const char *at = run->data + offset_of(&fold->folded, fold->folded.dims, i, &unused);
        if (!fold->by_columns) {
            reduction->rows(accumulators, at, run->stride, run->count, next, some);
            continue;
        }
        int64_t widened = some - some % wide;
        reduction->columns(accumulators, at, run->stride, run->count * wide, next * wide,
                           widened / wide);
        reduction->columns(accumulators, at + widened * next, run->stride, run->count, next,
                           some - widened);
    }
    for (int64_t i = 1; i < wide; i++) {
        reduction->join(accumulators, accumulators + i * run->count, run->count);
    }
}

static void finish(const struct fold *fold, const struct run *run, const uint64_t *accumulators)
{
    fold->reduction->finish(run->out, run->step, accumulators, run->count, fold->folded.count);
}

static void whole_runs(int64_t begin, int64_t end, void *arg)
{
    const struct fold *fold = arg;
    uint64_t accumulators[TILE];
    for (int64_t i = begin; i < end; i++) {
        struct run run = run_at(fold, i);
        fold_run(fold, &run, 0, fold->folded.count, accumulators);
        finish(fold, &run, accumulators);
    }
}

static int64_t part_begin(const struct fold *fold, int64_t part)
{
    int64_t count = fold->folded.count;
    return part < fold->parts ? count / EVEN * part / fold->parts * EVEN : count;
}

static void parts_of_runs(int64_t begin, int64_t end, void *arg)
{
    const struct fold *fold = arg;
    for (int64_t i = begin; i < end; i++) {
        struct run run = run_at(fold, i % fold->runs);
        int64_t part = i / fold->runs;
        fold_run(fold, &run, part_begin(fold, part), part_begin(fold, part + 1),
                 fold->partial + i * fold->run_limit);
    }
}

static void join_parts(const struct fold *fold)
{
    for (int64_t i = 0; i < fold->runs; i++) {
        struct run run = run_at(fold, i);
        uint64_t *accumulators = fold->partial + i * fold->run_limit;
        for (int64_t part = 1; part < fold->parts; part++) {
            fold->reduction->join(accumulators, accumulators + part * fold->runs * fold->run_limit,
                                  run.count);
        }
        finish(fold, &run, accumulators);
    }
}

static int run_all(struct fold *fold)
{
    int64_t row_stride, column_stride;
    int64_t length = inner_of(&fold->folded, &row_stride),
            width = inner_of(&fold->kept, &column_stride);
    fold->by_columns =
        width > 1 && fold->folded.count > 1 &&
        (magnitude(column_stride) < magnitude(row_stride) || (length < SHORT && width > length));
    fold->run_limit = fold->by_columns ? TILE : ROWS;
    fold->runs = fold->kept.count / width * ((width + fold->run_limit - 1) / fold->run_limit);
    int64_t work = fold->kept.count * fold->folded.count * fold->reduction->cost;
    fold->parts = 0;
    if (work >= 2 * OPSCOPE__GRAIN && 2 * fold->runs <= PIECE_LIMIT) {
        fold->parts = least(least(PIECE_LIMIT / fold->runs, work / fold->runs / PART_WORK),
                            fold->folded.count / PART_LENGTH);
    }
    fold->parts = fold->parts > 1 ? fold->parts : 1;
    int64_t pieces = fold->runs * fold->parts, grain = OPSCOPE__GRAIN / (work / pieces + CALL) + 1;
    if (fold->parts == 1) {
        opscope__parallel(pieces, grain, whole_runs, fold);
        return OPSCOPE_OK;
    }
    opscope_tensor *partial;
    int status =
        opscope__tensor_empty(1, (int64_t[]){pieces * fold->run_limit}, OPSCOPE_FLOAT64, &partial);
    if (status == OPSCOPE_OK) {
        fold->partial = (uint64_t *)(void *)partial->data;
        opscope__parallel(pieces, grain, parts_of_runs, fold);
        join_parts(fold);
        opscope_tensor_release(partial);
    }
    return status;
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
    struct fold fold = {.reduction = reduction, .data = self->data, .result = made->data};
    int64_t item = (int64_t)opscope_dtype_bytes(dtype);
    make_group(&fold.folded, self, set, false, item);
    make_group(&fold.kept, self, set, true, item);
    if (made->count > 0) {
        status = run_all(&fold);
    }
    return opscope__tensor_finish(status, made, out);
}
