/* A BLAS that tells what it got: the last call's arguments, one text for each routine. Compiled by
 * test_blas_slots.py. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static char got[512];

const char *fake_got(void)
{
    return got;
}

void cblas_sgemm(int order, int transa, int transb, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc)
{
    snprintf(got, sizeof got, "%d %d %d %d %d %d %g %g %d %g %d %g %g %d", order, transa, transb, m,
             n, k, (double)alpha, (double)*a, lda, (double)*b, ldb, (double)beta, (double)*c, ldc);
}

void cblas_dgemm64_(int order, int transa, int transb, int64_t m, int64_t n, int64_t k,
                    double alpha, const double *a, int64_t lda, const double *b, int64_t ldb,
                    double beta, double *c, int64_t ldc)
{
    snprintf(got, sizeof got, "%d %d %d %ld %ld %ld %g %g %ld %g %ld %g %g %ld", order, transa,
             transb, (long)m, (long)n, (long)k, alpha, *a, (long)lda, *b, (long)ldb, beta, *c,
             (long)ldc);
}

int dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info)
{
    snprintf(got, sizeof got, "%d %d %g %d", *m, *n, *a, *lda);
    *pivots = 7;
    *info = 0;
    return 41;
}

void dsyevr_64_(const char *jobz, const char *range, const char *uplo, const int64_t *n, double *a,
                const int64_t *lda, const double *vl, const double *vu, const int64_t *il,
                const int64_t *iu, const double *abstol, int64_t *m, double *w, double *z,
                const int64_t *ldz, int64_t *isuppz, double *work, const int64_t *lwork,
                int64_t *iwork, const int64_t *liwork, int64_t *info, size_t jobz_length,
                size_t range_length, size_t uplo_length)
{
    snprintf(
        got, sizeof got, "%c %c %c %ld %g %ld %g %g %ld %ld %g %g %g %ld %g %ld %ld %zu %zu %zu",
        *jobz, *range, *uplo, (long)*n, *a, (long)*lda, *vl, *vu, (long)*il, (long)*iu, *abstol, *w,
        *z, (long)*ldz, *work, (long)*lwork, (long)*liwork, jobz_length, range_length, uplo_length);
    *m = *isuppz = *iwork = 5;
    *info = -3;
}
