/* tensor/ops/nn/convolution_tiles.h -- the innermost loops of convolutions, on vectors.
 *
 * Included twice, with REAL, LANES (of a vector) and NAMED(name) defined for each dtype. A tile of
 * results stays in registers while its sum is computed: one factor is loaded as vectors, the other
 * as single numbers.
 */
/* ---- rows to columns -------------------------------------------------------------------------- */

/* Writes out[i * step + m] = from[m][i] for `count` elements of `rows` rows, which are `stride`
 * apart. `rows` is a constant power of two, at most 16; it is LANES or `step`. */
static inline __attribute__((always_inline)) void NAMED(interleave)(const REAL *from,
                                                                    int64_t stride, int64_t count,
                                                                    REAL *out, int64_t step,
                                                                    const int rows)
{
    int64_t i = 0;
#if defined(OPSCOPE__HAS_SHUFFLES) && LANES > 2
    enum { WIDTH = LANES };
    for (; i + WIDTH <= count; i += WIDTH) {
        NAMED(vector) all[16], next[16];
#pragma GCC unroll 16
        for (int m = 0; m < rows; m++) {
            all[m] = *(const NAMED(vector) *)(const void *)(from + m * stride + i);
        }
        /* Each turn moves the highest bit of (row, position) to the end. */
#pragma GCC unroll 4
        for (int turn = 1; turn < rows; turn *= 2) {
#pragma GCC unroll 8
            for (int m = 0; m < rows / 2; m++) {
                next[2 * m] = OPSCOPE__ZIP_LOW(LANES, all[m], all[m + rows / 2]);
                next[2 * m + 1] = OPSCOPE__ZIP_HIGH(LANES, all[m], all[m + rows / 2]);
            }
#pragma GCC unroll 16
            for (int m = 0; m < rows; m++) {
                all[m] = next[m];
            }
        }
#pragma GCC unroll 16
        for (int m = 0; m < rows; m++) {
            if (step == rows) {
                *(NAMED(vector) *)(void *)(out + i * step + m * WIDTH) = all[m];
            } else { /* rows == LANES */
                *(NAMED(vector) *)(void *)(out + (i + m) * step) = all[m];
            }
        }
    }
#endif
    for (; i < count; i++) {
        for (int m = 0; m < rows; m++) {
            out[i * step + m] = from[m * stride + i];
        }
    }
}

/* ---- outputs ---------------------------------------------------------------------------------- */

/* The sums of `kernels` output channels at `count` outputs, in as many vectors: both numbers of
 * registers are constants. `weight` has the kernels' numbers for each of `depth` patches side by
 * side. Adds to `out`, or to `start` (NULL: 0), which has a number for each kernel. Stores
 * `stored` of the kernels. `edge` has room for all sums, and no more: GCC warns of numbers that
 * nothing writes. */
static inline __attribute__((always_inline)) void NAMED(outputs)(
    const REAL *weight, const REAL *patches, const int64_t *offsets, int64_t depth, REAL *out,
    int64_t out_stride, const REAL *start, bool adds, int64_t count, int64_t stored, REAL *edge,
    const int kernels, const int vectors)
{
    NAMED(vector) sums[OPSCOPE__TILE_KERNELS][OPSCOPE__WIDE_VECTORS];
#pragma GCC unroll 8
    for (int m = 0; m < kernels; m++) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            sums[m][v] = (NAMED(vector)){0};
        }
    }
    for (int64_t k = 0; k < depth; k++, weight += kernels) {
        const REAL *row = patches + offsets[k];
        NAMED(vector) inputs[OPSCOPE__WIDE_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            inputs[v] = *(const NAMED(vector) *)(const void *)(row + v * LANES);
        }
#pragma GCC unroll 8
        for (int m = 0; m < kernels; m++) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) {
                sums[m][v] += weight[m] * inputs[v];
            }
        }
    }
    if (count < vectors * LANES || stored < kernels) { /* at an edge */
        const int64_t width = vectors * LANES;
        for (int m = 0; m < kernels; m++) {
            memcpy(edge + m * width, sums[m], (size_t)vectors * sizeof sums[m][0]);
        }
        for (int64_t m = 0; m < stored; m++) {
            for (int64_t i = 0; i < count; i++) {
                REAL before = adds ? out[m * out_stride + i] : start != NULL ? start[m] : 0;
                out[m * out_stride + i] = before + edge[m * width + i];
            }
        }
        return;
    }
#pragma GCC unroll 8
    for (int m = 0; m < kernels; m++) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            NAMED(vector) *to = (NAMED(vector) *)(void *)(out + m * out_stride + v * LANES);
            if (adds) {
                sums[m][v] += *to;
            } else if (start != NULL) {
                sums[m][v] += start[m];
            }
            *to = sums[m][v];
        }
    }
}

#define OPSCOPE__OUTPUTS(kernels, vectors)                                                         \
    do {                                                                                           \
        REAL edge[(kernels) * (vectors) * LANES];                                                  \
        NAMED(outputs)                                                                             \
        (weight, patches, offsets, depth, out, out_stride, start, adds, count, stored, edge,       \
         kernels, vectors);                                                                        \
    } while (0)

/* The same for any number of kernels that opscope__kernels_of gives. */
static __attribute__((noinline, unused)) void NAMED(outputs_of)(
    const REAL *weight, const REAL *patches, const int64_t *offsets, int64_t depth, REAL *out,
    int64_t out_stride, const REAL *start, bool adds, int64_t count, int64_t stored, int kernels)
{
    int vectors = (int)((count + LANES - 1) / LANES);
    if (kernels == OPSCOPE__TILE_KERNELS) {
        if (vectors == 1) {
            OPSCOPE__OUTPUTS(OPSCOPE__TILE_KERNELS, 1);
        } else if (vectors == 2) {
            OPSCOPE__OUTPUTS(OPSCOPE__TILE_KERNELS, 2);
        } else {
            OPSCOPE__OUTPUTS(OPSCOPE__TILE_KERNELS, OPSCOPE__TILE_VECTORS);
        }
    } else if (kernels == 4) {
        OPSCOPE__OUTPUTS(4, OPSCOPE__TILE_VECTORS);
    } else if (kernels == 2) {
        OPSCOPE__OUTPUTS(2, OPSCOPE__TILE_VECTORS);
    } else if (vectors > 4) {
        OPSCOPE__OUTPUTS(1, OPSCOPE__WIDE_VECTORS);
    } else if (vectors > 2) {
        OPSCOPE__OUTPUTS(1, 4);
    } else {
        OPSCOPE__OUTPUTS(1, 2);
    }
}

#undef OPSCOPE__OUTPUTS

/* ---- gradients of kernels --------------------------------------------------------------------- */

/* Adds, for each of some patches, patch * gradient over `count` outputs to `sums`, or begins them
 * if `is_first`: a row for each
 * patch, a column for each output channel. `grad` has the channels of an output side by side. */
static inline __attribute__((always_inline)) void NAMED(products)(
    const REAL *grad, int64_t grad_width, const REAL *patches, const int64_t *offsets,
    int64_t count, REAL *sums, int64_t width, bool is_first, const int rows, const int vectors)
{
    NAMED(vector) all[OPSCOPE__SUM_ROWS][OPSCOPE__SUM_VECTORS];
    const REAL *from[OPSCOPE__SUM_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
        from[r] = patches + offsets[r];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            all[r][v] = is_first
                            ? (NAMED(vector)){0}
                            : *(const NAMED(vector) *)(const void *)(sums + r * width + v * LANES);
        }
    }
    for (int64_t i = 0; i < count; i++, grad += grad_width) {
        NAMED(vector) one[OPSCOPE__SUM_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            one[v] = *(const NAMED(vector) *)(const void *)(grad + v * LANES);
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) {
                all[r][v] += from[r][i] * one[v];
            }
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) {
            *(NAMED(vector) *)(void *)(sums + r * width + v * LANES) = all[r][v];
        }
    }
}

#define OPSCOPE__PRODUCTS(rows, vectors)                                                           \
    NAMED(products)(grad, grad_width, patches, offsets, count, sums, width, is_first, rows, vectors)

static __attribute__((noinline, unused)) void NAMED(products_of)(
    const REAL *grad, int64_t grad_width, const REAL *patches, const int64_t *offsets,
    int64_t count, REAL *sums, int64_t width, bool is_first, int64_t rows, int vectors)
{
    while (rows > 0) {
        int some = rows >= OPSCOPE__SUM_ROWS ? OPSCOPE__SUM_ROWS : rows >= 3 ? 3 : 1;
        if (some == OPSCOPE__SUM_ROWS && vectors == 1) {
            OPSCOPE__PRODUCTS(OPSCOPE__SUM_ROWS, 1);
        } else if (some == OPSCOPE__SUM_ROWS && vectors == 2) {
            OPSCOPE__PRODUCTS(OPSCOPE__SUM_ROWS, 2);
        } else if (some == OPSCOPE__SUM_ROWS) {
            OPSCOPE__PRODUCTS(OPSCOPE__SUM_ROWS, OPSCOPE__SUM_VECTORS);
        } else if (some == 3 && vectors == 1) {
            OPSCOPE__PRODUCTS(3, 1);
        } else if (some == 3 && vectors == 2) {
            OPSCOPE__PRODUCTS(3, 2);
        } else if (some == 3) {
            OPSCOPE__PRODUCTS(3, OPSCOPE__SUM_VECTORS);
        } else if (vectors == 1) {
            OPSCOPE__PRODUCTS(1, 1);
        } else if (vectors == 2) {
            OPSCOPE__PRODUCTS(1, 2);
        } else {
            OPSCOPE__PRODUCTS(1, OPSCOPE__SUM_VECTORS);
        }
        offsets += some;
        sums += some * width;
        rows -= some;
    }
}

#undef OPSCOPE__PRODUCTS

/* The same for one output channel, whose gradients at `count` outputs are at `grad`. The sum of
 * each patch has as many columns as a vector has numbers: each for some of the outputs. */
static inline __attribute__((always_inline)) void NAMED(narrow_some)(
    const REAL *grad, const REAL *patches, const int64_t *offsets, int64_t count, REAL *sums,
    int64_t width, bool is_first, const int rows)
{
    int64_t whole = count / LANES * LANES;
    const REAL *from[OPSCOPE__NARROW_ROWS];
    NAMED(vector) all[OPSCOPE__NARROW_ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        from[r] = patches + offsets[r];
        all[r] = is_first ? (NAMED(vector)){0}
                          : *(const NAMED(vector) *)(const void *)(sums + r * width);
    }
    for (int64_t i = 0; i < whole; i += LANES) {
        NAMED(vector) one = *(const NAMED(vector) *)(const void *)(grad + i);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            all[r] += *(const NAMED(vector) *)(const void *)(from[r] + i) * one;
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        *(NAMED(vector) *)(void *)(sums + r * width) = all[r];
    }
    for (int64_t i = whole; i < count; i++) {
        for (int r = 0; r < rows; r++) {
            sums[r * width + i - whole] += from[r][i] * grad[i];
        }
    }
}

static __attribute__((noinline, unused)) void NAMED(narrow_products)(
    const REAL *grad, const REAL *patches, const int64_t *offsets, int64_t count, REAL *sums,
    int64_t width, bool is_first, int64_t rows)
{
    while (rows > 0) {
        int some = rows >= OPSCOPE__NARROW_ROWS ? OPSCOPE__NARROW_ROWS : rows >= 3 ? 3 : 1;
        if (some == OPSCOPE__NARROW_ROWS) {
            NAMED(narrow_some)
            (grad, patches, offsets, count, sums, width, is_first, OPSCOPE__NARROW_ROWS);
        } else if (some == 3) {
            NAMED(narrow_some)(grad, patches, offsets, count, sums, width, is_first, 3);
        } else {
            NAMED(narrow_some)(grad, patches, offsets, count, sums, width, is_first, 1);
        }
        offsets += some;
        sums += some * width;
        rows -= some;
    }
}

/* Adds the products of `vectors` vectors in each of some lines to the sums of `rows` patches, which
 * are `width` apart. Lines of gradients, and of patches, are a pitch apart. */
static inline __attribute__((always_inline)) void NAMED(some_lines)(
    const REAL *grad, int64_t grad_pitch, const REAL *patches, int64_t pitch,
    const int64_t *offsets, int64_t lines, int64_t vectors, REAL *sums, int64_t width,
    const int rows)
{
    const REAL *from[OPSCOPE__NARROW_ROWS];
    NAMED(vector) all[OPSCOPE__NARROW_ROWS];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        from[r] = patches + offsets[r];
        all[r] = *(const NAMED(vector) *)(const void *)(sums + r * width);
    }
    for (int64_t y = 0; y < lines; y++, grad += grad_pitch) {
        for (int64_t i = 0; i < vectors * LANES; i += LANES) {
            NAMED(vector) one = *(const NAMED(vector) *)(const void *)(grad + i);
#pragma GCC unroll 16
            for (int r = 0; r < rows; r++) {
                all[r] += *(const NAMED(vector) *)(const void *)(from[r] + y * pitch + i) * one;
            }
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        *(NAMED(vector) *)(void *)(sums + r * width) = all[r];
    }
}

static __attribute__((noinline, unused)) void NAMED(lines)(const REAL *grad, int64_t grad_pitch,
                                                           const REAL *patches, int64_t pitch,
                                                           const int64_t *offsets, int64_t lines,
                                                           int64_t vectors, REAL *sums,
                                                           int64_t width, int64_t rows)
{
    while (rows > 0 && vectors > 0) {
        int some = rows >= OPSCOPE__NARROW_ROWS ? OPSCOPE__NARROW_ROWS : rows >= 3 ? 3 : 1;
        if (some == OPSCOPE__NARROW_ROWS) {
            NAMED(some_lines)
            (grad, grad_pitch, patches, pitch, offsets, lines, vectors, sums, width,
             OPSCOPE__NARROW_ROWS);
        } else if (some == 3) {
            NAMED(some_lines)
            (grad, grad_pitch, patches, pitch, offsets, lines, vectors, sums, width, 3);
        } else {
            NAMED(some_lines)
            (grad, grad_pitch, patches, pitch, offsets, lines, vectors, sums, width, 1);
        }
        offsets += some;
        sums += some * width;
        rows -= some;
    }
}
