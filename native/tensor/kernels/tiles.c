/* tensor/kernels/tiles.c -- iterates over operands whose memory layouts have different orders. */
#include "tensor/kernels/tiles.h"

#include "tensor/kernels/parallel.h"

enum {
    LINE = 64,              /* bytes of a cache line on nearly every processor */
    ROWS = 64,              /* of a tile */
    TILE_BYTES = 16 * 1024, /* of an operand, so that tiles stay in the first-level cache */
    LEAST_SIZE = 8,     /* minimum size of a dimension: fewer elements would not fill cache lines */
    LEAST_COUNT = 16384 /* minimum number of elements: less memory fits into a cache as a whole */
};

struct tiles {
    const struct opscope__iterator *it;
    opscope__loop loop;
    void *user;
    int64_t rows, columns, bands; /* of one matrix; bands of ROWS rows */
    int64_t width;                /* columns in a tile */
    bool crosses[OPSCOPE__OPERAND_LIMIT];
};

static bool stays_in_line(int64_t step)
{
    return step != 0 && step < LINE && step > -LINE;
}

static bool crosses(const struct opscope__iterator *it, int operand, int dim)
{
    int64_t step = it->strides[it->dims - 1][operand];
    return step != 0 && !stays_in_line(step) && stays_in_line(it->strides[dim][operand]);
}

bool opscope__tiles_gain(struct opscope__iterator *it)
{
    int inner = it->dims - 1;
    if (it->count < LEAST_COUNT || inner < 1 || it->sizes[inner] < LEAST_SIZE) {
        return false;
    }
    for (int operand = 1; operand < it->operands; operand++) {
        for (int dim = inner - 1; dim >= 0; dim--) {
            if (it->sizes[dim] >= LEAST_SIZE && crosses(it, operand, dim) && !crosses(it, 0, dim)) {
                opscope__iterator_swap(it, dim, inner - 1);
                return true;
            }
        }
    }
    return false;
}

/* Copies rows x columns elements from `from` to rows of `width` elements. */
#define GATHER(type)                                                                               \
    static void gather_##type(type *to, int64_t width, const char *from, int64_t row_step,         \
                              int64_t column_step, int64_t rows, int64_t columns)                  \
    {                                                                                              \
        for (int64_t i = 0; i < columns; i++) {                                                    \
            for (int64_t j = 0; j < rows; j++) {                                                   \
                to[j * width + i] =                                                                \
                    *(const type *)(const void *)(from + i * column_step + j * row_step);          \
            }                                                                                      \
        }                                                                                          \
    }

GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

static void gather(const struct tiles *all, int operand, void *to, const char *from, int64_t rows,
                   int64_t columns)
{
    const struct opscope__iterator *it = all->it;
    int64_t row_step = it->strides[it->dims - 2][operand];
    int64_t column_step = it->strides[it->dims - 1][operand];
    switch (it->item[operand]) {
    case 1:
        gather_uint8_t(to, all->width, from, row_step, column_step, rows, columns);
        break;
    case 2:
        gather_uint16_t(to, all->width, from, row_step, column_step, rows, columns);
        break;
    case 4:
        gather_uint32_t(to, all->width, from, row_step, column_step, rows, columns);
        break;
    default:
        gather_uint64_t(to, all->width, from, row_step, column_step, rows, columns);
    }
}

/* Processes one tile, with its first elements at `corner`. */
static void walk_tile(const struct tiles *all, char *const *corner, int64_t rows, int64_t columns)
{
    const struct opscope__iterator *it = all->it;
    _Alignas(LINE) char copies[OPSCOPE__OPERAND_LIMIT - 1][TILE_BYTES];
    char *data[OPSCOPE__OPERAND_LIMIT];
    int64_t row_steps[OPSCOPE__OPERAND_LIMIT], steps[OPSCOPE__OPERAND_LIMIT];
    for (int i = 0; i < it->operands; i++) {
        data[i] = corner[i];
        row_steps[i] = it->strides[it->dims - 2][i];
        steps[i] = it->strides[it->dims - 1][i];
        if (all->crosses[i]) {
            gather(all, i, copies[i - 1], corner[i], rows, columns);
            data[i] = copies[i - 1];
            row_steps[i] = all->width * it->item[i];
            steps[i] = it->item[i];
        }
    }
    for (int64_t row = 0; row < rows; row++) {
        all->loop(data, steps, columns, all->user);
        for (int i = 0; i < it->operands; i++) {
            data[i] += row_steps[i];
        }
    }
}

/* Processes bands begin to end, counted over all matrices. */
static void walk_bands(int64_t begin, int64_t end, void *arg)
{
    const struct tiles *all = arg;
    const struct opscope__iterator *it = all->it;
    for (int64_t band = begin; band < end; band++) {
        int64_t rest = band / all->bands, row = band % all->bands * ROWS;
        int64_t rows = all->rows - row < ROWS ? all->rows - row : ROWS;
        char *data[OPSCOPE__OPERAND_LIMIT];
        for (int i = 0; i < it->operands; i++) {
            data[i] = it->data[i] + row * it->strides[it->dims - 2][i];
        }
        for (int dim = it->dims - 3; dim >= 0; dim--) {
            int64_t at = rest % it->sizes[dim];
            rest /= it->sizes[dim];
            for (int i = 0; i < it->operands; i++) {
                data[i] += at * it->strides[dim][i];
            }
        }
        for (int64_t column = 0; column < all->columns; column += all->width) {
            int64_t left = all->columns - column;
            walk_tile(all, data, rows, left < all->width ? left : all->width);
            for (int i = 0; i < it->operands; i++) {
                data[i] += all->width * it->strides[it->dims - 1][i];
            }
        }
    }
}

void opscope__iterate_tiles(const struct opscope__iterator *it, opscope__loop loop, void *user,
                            int64_t cost)
{
    struct tiles all = {.it = it, .loop = loop, .user = user};
    int64_t item = 1;
    for (int i = 1; i < it->operands; i++) {
        all.crosses[i] = crosses(it, i, it->dims - 2);
        item = all.crosses[i] && it->item[i] > item ? it->item[i] : item;
    }
    all.rows = it->sizes[it->dims - 2];
    all.columns = it->sizes[it->dims - 1];
    all.bands = (all.rows + ROWS - 1) / ROWS;
    all.width = TILE_BYTES / (ROWS * item);
    int64_t bands = it->count / (all.rows * all.columns) * all.bands;
    opscope__parallel(bands, OPSCOPE__GRAIN / (cost * ROWS * all.columns) + 1, walk_bands, &all);
}
