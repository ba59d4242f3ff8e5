/* tensor/kernels/blas.c -- loads a BLAS at run time and passes matrices to it.
 *
 * A matrix with contiguous rows or columns is passed without a copy (transposed or not); any other
 * is copied first. Without a BLAS, and for integers, plain loops compute the product. A BLAS is
 * used only if its products of a self-test are right: OpenBLAS 0.3.34 gave wrong ones on a
 * processor with SME (as QEMU emulates it).
 */
#include "tensor/kernels/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomics.h"
#include "opscope/fork.h"

/* The values are those of CBLAS. */
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

#define GEMM_TYPES(name, integer, real)                                                            \
    typedef void (*name)(int, int, int, integer, integer, integer, real, const void *, integer,    \
                         const void *, integer, real, void *, integer);
GEMM_TYPES(sgemm_32, int32_t, float)
GEMM_TYPES(dgemm_32, int32_t, double)
GEMM_TYPES(sgemm_64, int64_t, float)
GEMM_TYPES(dgemm_64, int64_t, double)

struct blas {
    void *sgemm, *dgemm;
    bool is_64;
    void (*set_threads)(int); /* NULL: not an OpenBLAS; its threads are not controlled */
    int threads;              /* its initial number of threads, the maximum */
};

/* opscope_blas_load writes it with release, every product reads it with acquire; never freed,
 * because a thread may be using it. */
static const struct blas *loaded;

/* The lock guards the other fields. */
static struct {
    pthread_mutex_t lock; /* no other lock is taken inside */
    int count;            /* of running products */
    int threads;          /* the number last set in `blas`; 0: none yet */
    const struct blas *blas;
} inside = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t forks_arranged = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&inside.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&inside.lock);
}

static void in_child(void)
{
    inside.count = 0; /* the other threads do not exist here */
    pthread_mutex_unlock(&inside.lock);
}

static void arrange_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

static void *symbol(void *library, const char *prefix, const char *name, const char *suffix)
{
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", prefix, name, suffix);
    return dlsym(library, text);
}

static void find_threads(struct blas *blas, void *library, const char *prefix, const char *suffix)
{
    void *get = symbol(library, prefix, "openblas_get_num_threads", suffix);
    void *set = symbol(library, prefix, "openblas_set_num_threads", suffix);
    if (get != NULL && set != NULL) {
        blas->threads = ((int (*)(void))(uintptr_t)get)();
        blas->set_threads = (void (*)(int))(uintptr_t)set;
    }
}

/* ---- its threads ------------------------------------------------------------------------------ */

/* A product by the BLAS starts on as many threads as the pool has free: all, or one inside a task
 * or a piece while the others work too. The BLAS has one number of threads for all callers, so it
 * is changed only while no product runs; a product that starts later uses the number that the first
 * one set. */
static void enter(const struct blas *blas)
{
    if (blas->set_threads == NULL) {
        return;
    }
    int wanted = opscope_pool_free_threads();
    wanted = wanted < blas->threads ? wanted : blas->threads;
    pthread_mutex_lock(&inside.lock);
    if (inside.count++ == 0 && (inside.blas != blas || inside.threads != wanted)) {
        blas->set_threads(wanted);
        inside.blas = blas;
        inside.threads = wanted;
    }
    pthread_mutex_unlock(&inside.lock);
}

static void leave(const struct blas *blas)
{
    if (blas->set_threads != NULL) {
        pthread_mutex_lock(&inside.lock);
        inside.count--;
        pthread_mutex_unlock(&inside.lock);
    }
}

/* ---- plain loops -------------------------------------------------------------------------------- */

#define PLAIN(name, type)                                                                          \
    static void name(const struct opscope__matrix *a, const struct opscope__matrix *b, char *out,  \
                     int64_t c_stride, bool add)                                                   \
    {                                                                                              \
        for (int64_t i = 0; i < a->rows; i++) {                                                    \
            type *c = (type *)(void *)out + i * c_stride;                                          \
            for (int64_t j = 0; j < b->columns && !add; j++) {                                     \
                c[j] = 0;                                                                          \
            }                                                                                      \
            for (int64_t k = 0; k < a->columns; k++) {                                             \
                const type x = ((const type *)(const void *)                                       \
                                    a->data)[i * a->row_stride + k * a->column_stride];            \
                const type *y = (const type *)(const void *)b->data + k * b->row_stride;           \
                for (int64_t j = 0; j < b->columns; j++) {                                         \
                    c[j] = (type)(c[j] + x * y[j * b->column_stride]);                             \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

PLAIN(plain_float32, float)
PLAIN(plain_float64, double)
/* Unsigned, because overflow then wraps around. */
PLAIN(plain_int32, uint32_t)
PLAIN(plain_int64, uint64_t)
PLAIN(plain_uint8, uint8_t)

/* ---- by the BLAS ------------------------------------------------------------------------------ */

/* A matrix in the form of BLAS arguments. */
struct operand {
    const char *data;
    char *copy; /* owned; NULL: no copy was needed */
    int order;
    int64_t stride;
};

/* True if the strides are valid BLAS arguments for lines of that many elements. */
static bool can_go(int64_t inner_stride, int64_t outer_stride, int64_t inner)
{
    return inner_stride == 1 && outer_stride >= (inner > 1 ? inner : 1);
}

static int prepare(const struct opscope__matrix *matrix, size_t item, struct operand *out)
{
    *out = (struct operand){matrix->data, NULL, AS_IS, matrix->row_stride};
    if (can_go(matrix->column_stride, matrix->row_stride, matrix->columns)) {
        return OPSCOPE_OK;
    }
    out->order = TRANSPOSED;
    out->stride = matrix->column_stride;
    if (can_go(matrix->row_stride, matrix->column_stride, matrix->rows)) {
        return OPSCOPE_OK;
    }
    out->order = AS_IS;
    out->stride = matrix->columns;
    out->copy = malloc((size_t)(matrix->rows * matrix->columns) * item);
    if (out->copy == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "out of memory for a matrix product");
    }
    char *to = out->copy;
    for (int64_t i = 0; i < matrix->rows; i++) {
        for (int64_t j = 0; j < matrix->columns; j++, to += item) {
            int64_t from = i * matrix->row_stride + j * matrix->column_stride;
            memcpy(to, matrix->data + from * (int64_t)item, item);
        }
    }
    out->data = out->copy;
    return OPSCOPE_OK;
}

static void multiply(const struct blas *blas, opscope_dtype dtype, const struct operand *x,
                     const struct operand *y, int64_t m, int64_t n, int64_t k, char *c,
                     int64_t stride, bool add)
{
    float beta = add ? 1.0f : 0.0f;
    if (blas->is_64 && dtype == OPSCOPE_FLOAT32) {
        ((sgemm_64)(uintptr_t)blas->sgemm)(ROW_MAJOR, x->order, y->order, m, n, k, 1.0f, x->data,
                                           x->stride, y->data, y->stride, beta, c, stride);
    } else if (blas->is_64) {
        ((dgemm_64)(uintptr_t)blas->dgemm)(ROW_MAJOR, x->order, y->order, m, n, k, 1.0, x->data,
                                           x->stride, y->data, y->stride, (double)beta, c, stride);
    } else if (dtype == OPSCOPE_FLOAT32) {
        ((sgemm_32)(uintptr_t)blas->sgemm)(ROW_MAJOR, x->order, y->order, (int32_t)m, (int32_t)n,
                                           (int32_t)k, 1.0f, x->data, (int32_t)x->stride, y->data,
                                           (int32_t)y->stride, beta, c, (int32_t)stride);
    } else {
        ((dgemm_32)(uintptr_t)blas->dgemm)(ROW_MAJOR, x->order, y->order, (int32_t)m, (int32_t)n,
                                           (int32_t)k, 1.0, x->data, (int32_t)x->stride, y->data,
                                           (int32_t)y->stride, (double)beta, c, (int32_t)stride);
    }
}

/* ---- self-test and load ------------------------------------------------------------------------- */

/* No multiples of the tiles of common kernels, and longer than one. */
enum { TEST_ROWS = 33, TEST_INNER = 37, TEST_COLUMNS = 17 };

/* Small integers: their products are exact in float32 too. */
static int left_value(int row, int inner)
{
    return (7 * row + 3 * inner) % 11 - 5;
}

static int right_value(int inner, int column)
{
    return (5 * inner + 2 * column) % 13 - 6;
}

static int old_value(int row, int column)
{
    return row - column;
}

static int expected(int row, int column, bool add)
{
    int sum = add ? old_value(row, column) : 0;
    for (int inner = 0; inner < TEST_INNER; inner++) {
        sum += left_value(row, inner) * right_value(inner, column);
    }
    return sum;
}

#define IS_RIGHT(name, type, dtype)                                                                \
    static bool name(const struct blas *blas, int left_order, int right_order, bool add)           \
    {                                                                                              \
        type left[TEST_ROWS * TEST_INNER], right[TEST_INNER * TEST_COLUMNS];                       \
        type product[TEST_ROWS * TEST_COLUMNS];                                                    \
        const int left_stride = left_order == AS_IS ? TEST_INNER : TEST_ROWS;                      \
        const int right_stride = right_order == AS_IS ? TEST_COLUMNS : TEST_INNER;                 \
        for (int i = 0; i < TEST_INNER; i++) {                                                     \
            for (int r = 0; r < TEST_ROWS; r++) {                                                  \
                left[left_order == AS_IS ? r * left_stride + i : i * left_stride + r] =            \
                    (type)left_value(r, i);                                                        \
            }                                                                                      \
            for (int c = 0; c < TEST_COLUMNS; c++) {                                               \
                right[right_order == AS_IS ? i * right_stride + c : c * right_stride + i] =        \
                    (type)right_value(i, c);                                                       \
            }                                                                                      \
        }                                                                                          \
        for (int at = 0; at < TEST_ROWS * TEST_COLUMNS; at++) {                                    \
            product[at] = (type)old_value(at / TEST_COLUMNS, at % TEST_COLUMNS);                   \
        }                                                                                          \
        const struct operand x = {(const char *)left, NULL, left_order, left_stride};              \
        const struct operand y = {(const char *)right, NULL, right_order, right_stride};           \
        multiply(blas, dtype, &x, &y, TEST_ROWS, TEST_COLUMNS, TEST_INNER, (char *)product,        \
                 TEST_COLUMNS, add);                                                               \
        for (int at = 0; at < TEST_ROWS * TEST_COLUMNS; at++) {                                    \
            /* Whole numbers; a NaN is none of them. */                                            \
            const double is = (double)product[at];                                                 \
            const double wanted = expected(at / TEST_COLUMNS, at % TEST_COLUMNS, add);             \
            if (!(is >= wanted && is <= wanted)) {                                                 \
                return false;                                                                      \
            }                                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }

IS_RIGHT(is_right_float32, float, OPSCOPE_FLOAT32)
IS_RIGHT(is_right_float64, double, OPSCOPE_FLOAT64)

static bool multiplies_rightly(const struct blas *blas)
{
    for (int way = 0; way < 8; way++) {
        const int left_order = way & 1 ? TRANSPOSED : AS_IS;
        const int right_order = way & 2 ? TRANSPOSED : AS_IS;
        const bool add = (way & 4) != 0;
        if (!is_right_float32(blas, left_order, right_order, add) ||
            !is_right_float64(blas, left_order, right_order, add)) {
            return false;
        }
    }
    return true;
}

int opscope_blas_load(const char *library_path, const char *prefix, const char *suffix)
{
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "blas: %s", dlerror());
    }
    struct blas *blas = calloc(1, sizeof *blas);
    if (blas == NULL) {
        dlclose(library);
        return opscope_tensor_fail(OPSCOPE_ERROR_MEMORY, "blas: out of memory");
    }
    size_t length = strlen(suffix);
    blas->sgemm = symbol(library, prefix, "cblas_sgemm", suffix);
    blas->dgemm = symbol(library, prefix, "cblas_dgemm", suffix);
    blas->is_64 = length >= 3 && strcmp(suffix + length - 3, "64_") == 0;
    if (blas->sgemm == NULL || blas->dgemm == NULL) {
        free(blas);
        dlclose(library);
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "blas: %s has no %scblas_sgemm%s",
                                   library_path, prefix, suffix);
    }
    if (!multiplies_rightly(blas)) {
        free(blas); /* the library stays loaded, because threads that it has started run its code */
        return opscope_tensor_fail(OPSCOPE_ERROR_RUNTIME, "blas: %s multiplies wrongly",
                                   library_path);
    }
    find_threads(blas, library, prefix, suffix);
    pthread_once(&forks_arranged, arrange_forks);
    opscope__store_release(&loaded, blas);
    return OPSCOPE_OK;
}

/* ---- products ---------------------------------------------------------------------------------- */

/* True if every number of the product fits the BLAS's integers. */
static bool fits(const struct blas *blas, const struct opscope__matrix *a,
                 const struct opscope__matrix *b, int64_t c_stride)
{
    const int64_t numbers[] = {a->rows,       a->columns,       b->columns,       a->row_stride,
                               b->row_stride, a->column_stride, b->column_stride, c_stride};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!blas->is_64 && (numbers[i] > INT32_MAX || numbers[i] < INT32_MIN)) {
            return false;
        }
    }
    return true;
}

static int by_blas(const struct blas *blas, opscope_dtype dtype, const struct opscope__matrix *a,
                   const struct opscope__matrix *b, char *c, int64_t c_stride, bool add)
{
    struct operand x = {0}, y = {0};
    size_t item = opscope_dtype_bytes(dtype);
    int status = prepare(a, item, &x);
    if (status == OPSCOPE_OK) {
        status = prepare(b, item, &y);
    }
    if (status == OPSCOPE_OK) {
        enter(blas);
        multiply(blas, dtype, &x, &y, a->rows, b->columns, a->columns, c, c_stride, add);
        leave(blas);
    }
    free(x.copy);
    free(y.copy);
    return status;
}

int opscope__gemm(const char *name, opscope_dtype dtype, const struct opscope__matrix *a,
                  const struct opscope__matrix *b, char *c, int64_t c_stride, bool add)
{
    /* Partner: the release in opscope_blas_load. */
    const struct blas *blas = opscope__load_acquire(&loaded);
    bool is_real = dtype == OPSCOPE_FLOAT32 || dtype == OPSCOPE_FLOAT64;
    if (blas != NULL && is_real && a->rows > 0 && b->columns > 0 && a->columns > 0 &&
        fits(blas, a, b, c_stride)) {
        return by_blas(blas, dtype, a, b, c, c_stride, add);
    }
    switch (dtype) {
    case OPSCOPE_FLOAT32:
        plain_float32(a, b, c, c_stride, add);
        return OPSCOPE_OK;
    case OPSCOPE_FLOAT64:
        plain_float64(a, b, c, c_stride, add);
        return OPSCOPE_OK;
    case OPSCOPE_INT32:
        plain_int32(a, b, c, c_stride, add);
        return OPSCOPE_OK;
    case OPSCOPE_INT64:
        plain_int64(a, b, c, c_stride, add);
        return OPSCOPE_OK;
    case OPSCOPE_UINT8:
        plain_uint8(a, b, c, c_stride, add);
        return OPSCOPE_OK;
    default:
        return opscope_tensor_fail(OPSCOPE_ERROR_TYPE, "%s: not defined for %s", name,
                                   opscope_dtype_name(dtype));
    }
}
