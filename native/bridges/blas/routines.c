/* blas/routines.c -- the table. Signatures are those of the reference implementations. */
#include "bridges/blas/routines.h"

#include <stdio.h>
#include <string.h>

#define NONE -1
#define NO_CBLAS {NONE, NONE, NONE}

/* Not in the table: BLAS of level 1, which takes less time than a range for most vectors; norms,
 * whose results are numbers; gees and gges, which call a function of the program. */
static const struct opscope__blas_routine routines[] = {
    {"gemm", "sdcz", 3, 15, {2, 3, 4}, {3, 4, 5}, NONE},
    {"symm", "sdcz", 3, 14, {2, 3, 2}, {3, 4, 3}, NONE},
    {"hemm", "cz", 3, 14, {2, 3, 2}, {3, 4, 3}, NONE},
    {"trmm", "sdcz", 3, 15, {4, 5, 4}, {5, 6, 5}, NONE},
    {"trsm", "sdcz", 3, 15, {4, 5, 4}, {5, 6, 5}, NONE},
    {"syrk", "sdcz", 3, 12, {2, 3, 2}, {3, 4, 3}, NONE},
    {"herk", "cz", 3, 12, {2, 3, 2}, {3, 4, 3}, NONE},
    {"syr2k", "sdcz", 3, 14, {2, 3, 2}, {3, 4, 3}, NONE},
    {"her2k", "cz", 3, 14, {2, 3, 2}, {3, 4, 3}, NONE},
    {"gemv", "sdcz", 2, 12, {1, 2, NONE}, {2, 3, NONE}, NONE},
    {"ger", "sd", 2, 9, {0, 1, NONE}, {1, 2, NONE}, NONE},
    {"geru", "cz", 2, 9, {0, 1, NONE}, {1, 2, NONE}, NONE},
    {"gerc", "cz", 2, 9, {0, 1, NONE}, {1, 2, NONE}, NONE},
    {"symv", "sd", 2, 11, {1, 1, NONE}, {2, 2, NONE}, NONE},
    {"hemv", "cz", 2, 11, {1, 1, NONE}, {2, 2, NONE}, NONE},
    {"trmv", "sdcz", 2, 11, {3, 3, NONE}, {4, 4, NONE}, NONE},
    {"trsv", "sdcz", 2, 11, {3, 3, NONE}, {4, 4, NONE}, NONE},
    {"syr", "sd", 2, 8, {1, 1, NONE}, {2, 2, NONE}, NONE},
    {"her", "cz", 2, 8, {1, 1, NONE}, {2, 2, NONE}, NONE},
    {"syr2", "sd", 2, 10, {1, 1, NONE}, {2, 2, NONE}, NONE},
    {"her2", "cz", 2, 10, {1, 1, NONE}, {2, 2, NONE}, NONE},
    /* Linear equations. */
    {"getrf", "sdcz", 0, 6, {0, 1, NONE}, NO_CBLAS, NONE},
    {"getrs", "sdcz", 0, 10, {1, 1, 2}, NO_CBLAS, NONE},
    {"getri", "sdcz", 0, 7, {0, 0, NONE}, NO_CBLAS, 5},
    {"gesv", "sdcz", 0, 8, {0, 0, 1}, NO_CBLAS, NONE},
    {"gesvx", "sdcz", 0, 25, {2, 2, 3}, NO_CBLAS, NONE},
    {"gbsv", "sdcz", 0, 10, {0, 0, 3}, NO_CBLAS, NONE},
    {"potrf", "sdcz", 0, 6, {1, 1, NONE}, NO_CBLAS, NONE},
    {"potrs", "sdcz", 0, 9, {1, 1, 2}, NO_CBLAS, NONE},
    {"potri", "sdcz", 0, 6, {1, 1, NONE}, NO_CBLAS, NONE},
    {"posv", "sdcz", 0, 9, {1, 1, 2}, NO_CBLAS, NONE},
    {"trtri", "sdcz", 0, 8, {2, 2, NONE}, NO_CBLAS, NONE},
    {"trtrs", "sdcz", 0, 13, {3, 3, 4}, NO_CBLAS, NONE},
    {"sytrf", "sdcz", 0, 9, {1, 1, NONE}, NO_CBLAS, 6},
    {"hetrf", "cz", 0, 9, {1, 1, NONE}, NO_CBLAS, 6},
    {"sytrs", "sdcz", 0, 10, {1, 1, 2}, NO_CBLAS, NONE},
    {"hetrs", "cz", 0, 10, {1, 1, 2}, NO_CBLAS, NONE},
    {"sysv", "sdcz", 0, 12, {1, 1, 2}, NO_CBLAS, 9},
    {"hesv", "cz", 0, 12, {1, 1, 2}, NO_CBLAS, 9},
    {"trsyl", "sdcz", 0, 15, {3, 4, NONE}, NO_CBLAS, NONE},
    /* Least squares and orthogonal factors. */
    {"geqrf", "sdcz", 0, 8, {0, 1, NONE}, NO_CBLAS, 6},
    {"gelqf", "sdcz", 0, 8, {0, 1, NONE}, NO_CBLAS, 6},
    {"gerqf", "sdcz", 0, 8, {0, 1, NONE}, NO_CBLAS, 6},
    {"geqp3", "sdcz", 0, 10, {0, 1, NONE}, NO_CBLAS, 7},
    {"orgqr", "sd", 0, 9, {0, 1, 2}, NO_CBLAS, 7},
    {"ungqr", "cz", 0, 9, {0, 1, 2}, NO_CBLAS, 7},
    {"ormqr", "sd", 0, 15, {2, 3, 4}, NO_CBLAS, 11},
    {"unmqr", "cz", 0, 15, {2, 3, 4}, NO_CBLAS, 11},
    {"gels", "sdcz", 0, 12, {1, 2, 3}, NO_CBLAS, 9},
    {"gelsd", "sdcz", 0, 15, {0, 1, 2}, NO_CBLAS, 11},
    {"gelss", "sdcz", 0, 14, {0, 1, 2}, NO_CBLAS, 11},
    {"gelsy", "sdcz", 0, 14, {0, 1, 2}, NO_CBLAS, 11},
    /* Singular values and eigenvalues. */
    {"gesdd", "sdcz", 0, 16, {1, 2, NONE}, NO_CBLAS, 11},
    {"gesvd", "sdcz", 0, 17, {2, 3, NONE}, NO_CBLAS, 12},
    {"syev", "sd", 0, 11, {2, 2, NONE}, NO_CBLAS, 7},
    {"heev", "cz", 0, 12, {2, 2, NONE}, NO_CBLAS, 7},
    {"syevd", "sd", 0, 13, {2, 2, NONE}, NO_CBLAS, 7},
    {"heevd", "cz", 0, 15, {2, 2, NONE}, NO_CBLAS, 7},
    {"syevr", "sd", 0, 24, {3, 3, NONE}, NO_CBLAS, 17},
    {"heevr", "cz", 0, 26, {3, 3, NONE}, NO_CBLAS, 17},
    {"syevx", "sd", 0, 23, {3, 3, NONE}, NO_CBLAS, 16},
    {"heevx", "cz", 0, 24, {3, 3, NONE}, NO_CBLAS, 16},
    {"sygv", "sd", 0, 14, {3, 3, NONE}, NO_CBLAS, 10},
    {"hegv", "cz", 0, 15, {3, 3, NONE}, NO_CBLAS, 10},
    {"sygvd", "sd", 0, 16, {3, 3, NONE}, NO_CBLAS, 10},
    {"hegvd", "cz", 0, 18, {3, 3, NONE}, NO_CBLAS, 10},
    {"sygvx", "sd", 0, 26, {4, 4, NONE}, NO_CBLAS, 19},
    {"hegvx", "cz", 0, 27, {4, 4, NONE}, NO_CBLAS, 19},
    {"geev", "sd", 0, 16, {2, 2, NONE}, NO_CBLAS, 12},
    {"geev", "cz", 0, 16, {2, 2, NONE}, NO_CBLAS, 11},
    {"ggev", "sd", 0, 19, {2, 2, NONE}, NO_CBLAS, 15},
    {"ggev", "cz", 0, 19, {2, 2, NONE}, NO_CBLAS, 14},
    {"gehrd", "sdcz", 0, 9, {0, 0, NONE}, NO_CBLAS, 7},
};
enum { ROUTINE_COUNT = sizeof routines / sizeof *routines };

static const struct opscope__blas_routine *find(char type, const char *name, size_t bytes)
{
    for (size_t i = 0; i < ROUTINE_COUNT; i++) {
        const struct opscope__blas_routine *routine = &routines[i];
        if (routine->name[0] == name[0] && routine->name[1] == name[1] &&
            strncmp(routine->name, name, bytes) == 0 && routine->name[bytes] == '\0' &&
            strchr(routine->types, type) != NULL) {
            return routine;
        }
    }
    return NULL;
}

static bool is_one_of(const char *text, const char *const *known)
{
    while (*known != NULL && strcmp(*known, text) != 0) {
        known++;
    }
    return *known != NULL;
}

/* After CBLAS's name: nothing, OpenBLAS's suffix or that of MKL. After Fortran's: its underscore,
 * before OpenBLAS's suffix or after that of MKL. */
static bool parse_suffix(const char *suffix, bool is_cblas, bool *has_64_bit)
{
    static const char *const cblas[] = {"", "64_", "_64", NULL};
    static const char *const fortran[] = {"_", "_64_", NULL};
    *has_64_bit = strstr(suffix, "64") != NULL;
    return is_one_of(suffix, is_cblas ? cblas : fortran);
}

bool opscope__blas_parse(const char *symbol, struct opscope__blas_symbol *out)
{
    static const char prefix[] = "scipy_";
    static const char cblas[] = "cblas_";
    if (strncmp(symbol, prefix, sizeof prefix - 1) == 0) {
        symbol += sizeof prefix - 1;
    }
    out->is_cblas = strncmp(symbol, cblas, sizeof cblas - 1) == 0;
    if (out->is_cblas) {
        symbol += sizeof cblas - 1;
    }
    out->type = symbol[0];
    if (out->type == '\0' || strchr("sdcz", out->type) == NULL) {
        return false;
    }
    /* A digit ends the name only as part of the suffix: "syr2k". */
    const size_t bytes = strcspn(symbol + 1, "_6");
    out->routine = bytes != 0 ? find(out->type, symbol + 1, bytes) : NULL;
    return out->routine != NULL &&
           parse_suffix(symbol + 1 + bytes, out->is_cblas, &out->has_64_bit) &&
           (!out->is_cblas || out->routine->cblas_sizes[0] != NONE);
}

void opscope__blas_op_name(const struct opscope__blas_symbol *symbol,
                           char out[OPSCOPE__BLAS_NAME_BYTES])
{
    const struct opscope__blas_routine *routine = symbol->routine;
    snprintf(out, OPSCOPE__BLAS_NAME_BYTES, "%s::%c%s", routine->level != 0 ? "blas" : "lapack",
             symbol->type, routine->name);
}

size_t opscope__blas_sizes(const struct opscope__blas_symbol *symbol, const uint64_t *words,
                           int64_t out[OPSCOPE__BLAS_SIZES])
{
    const struct opscope__blas_routine *routine = symbol->routine;
    const int8_t *at = symbol->is_cblas ? routine->cblas_sizes : routine->sizes;
    size_t count = 0;
    if (opscope__blas_is_small(symbol, words, routine->words) ||
        (routine->workspace != NONE &&
         opscope__blas_read_size(symbol, words[routine->workspace]) == -1)) {
        return 0;
    }
    for (size_t i = 0; i < OPSCOPE__BLAS_SIZES && at[i] != NONE; i++) {
        const bool is_new = (i < 1 || at[i] != at[0]) && (i < 2 || at[i] != at[1]);
        if (is_new) {
            out[count++] = opscope__blas_read_size(symbol, words[at[i]]);
        }
    }
    return count;
}
