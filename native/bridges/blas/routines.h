/* blas/routines.h -- the routines of BLAS and LAPACK that become ranges, and what their arguments
 * say about the size of a call. */
#ifndef OPSCOPE_BRIDGES_BLAS_ROUTINES_H
#define OPSCOPE_BRIDGES_BLAS_ROUTINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { OPSCOPE__BLAS_SIZES = 3, OPSCOPE__BLAS_NAME_BYTES = 24 };

/* One routine for all types of numbers whose signatures agree. An argument is given by its index
 * among those that are no floating-point numbers; -1: none. */
struct opscope__blas_routine {
    const char *name;                  /* without the letter of the type: "gemm" */
    const char *types;                 /* letters: "sdcz" */
    uint8_t level;                     /* 2 or 3 of BLAS; 0: LAPACK */
    uint8_t words;                     /* arguments in Fortran, with the hidden lengths of texts */
    int8_t sizes[OPSCOPE__BLAS_SIZES]; /* in Fortran; one may be there twice */
    int8_t
        cblas_sizes[OPSCOPE__BLAS_SIZES]; /* in CBLAS; the first is -1: it has no such function */
    int8_t workspace; /* LWORK, which is -1 in a query of the workspace's size */
};

/* How a symbol's name says that the routine is called. */
struct opscope__blas_symbol {
    const struct opscope__blas_routine *routine;
    char type;       /* the letter */
    bool is_cblas;   /* arguments by value; else pointers to them */
    bool has_64_bit; /* integers of 64 bits; else of 32 */
};

/* Whether `symbol` is the name of a routine in the table: with the underscore of Fortran or the
 * prefix of CBLAS, with the suffix of 64-bit integers, and with SciPy's prefix ("dgemm_",
 * "cblas_dgemm64_", "scipy_dgesv_64_"). */
bool opscope__blas_parse(const char *symbol, struct opscope__blas_symbol *out);
/* The operator's name, such as "blas::dgemm" or "lapack::dgesv". */
void opscope__blas_op_name(const struct opscope__blas_symbol *symbol,
                           char out[OPSCOPE__BLAS_NAME_BYTES]);
/* A size among the words. A library may take wider integers than its names say. Their lower halves
 * are read then, which are the sizes that occur: both machines store the lower half first. */
static inline int64_t opscope__blas_read_size(const struct opscope__blas_symbol *symbol,
                                              uint64_t word)
{
    if (symbol->is_cblas) {
        return symbol->has_64_bit ? (int64_t)word : (int32_t)word;
    }
    const void *place = (const void *)(uintptr_t)word;
    if (symbol->has_64_bit) {
        int64_t wide;
        memcpy(&wide, place, sizeof wide);
        return wide;
    }
    int32_t narrow;
    memcpy(&narrow, place, sizeof narrow);
    return narrow;
}

/* Whether a call with those arguments is too short for a range, less than about a microsecond: a
 * product of matrices with fewer than 32,768 multiplications, one of a matrix and a vector with
 * fewer than 10,000, a matrix of fewer than 400 elements for LAPACK. false also if the first
 * `count` words do not tell. Inline: calls of 20 ns ask this. */
static inline bool opscope__blas_is_small(const struct opscope__blas_symbol *symbol,
                                          const uint64_t *words, size_t count)
{
    static const uint16_t least[] = {400, 0, 10000, 32768};
    enum { MOST = UINT16_MAX }; /* three factors of it fit into 64 bits */
    const struct opscope__blas_routine *routine = symbol->routine;
    const int8_t *at = symbol->is_cblas ? routine->cblas_sizes : routine->sizes;
    const size_t factors = routine->level == 3 ? 3 : 2;
    uint64_t work = 1;
    for (size_t i = 0; i < factors; i++) {
        if ((size_t)at[i] >= count) {
            return false;
        }
        const int64_t size = opscope__blas_read_size(symbol, words[at[i]]);
        work *= (uint64_t)(size < 0 ? 0 : size > MOST ? MOST : size);
    }
    return work < least[routine->level];
}

/* The sizes of a call, each once; returns their number. 0: it gets no range, because it is small or
 * asks for the size of a workspace. */
size_t opscope__blas_sizes(const struct opscope__blas_symbol *symbol, const uint64_t *words,
                           int64_t out[OPSCOPE__BLAS_SIZES]);

#endif
