/* A library that calls BLAS, as an extension module does. Compiled by test_blas_slots.py. */
#include <stddef.h>
#include <stdint.h>

void cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                 float *, int);
void cblas_dgemm64_(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t,
                    const double *, int64_t, double, double *, int64_t);
int dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dsyevr_64_(const char *, const char *, const char *, const int64_t *, double *,
                const int64_t *, const double *, const double *, const int64_t *, const int64_t *,
                const double *, int64_t *, double *, double *, const int64_t *, int64_t *, double *,
                const int64_t *, int64_t *, const int64_t *, int64_t *, size_t, size_t, size_t);

void call_sgemm(int n)
{
    float a = 1.25f, b = 2.5f, c = 3.75f;
    cblas_sgemm(101, 111, 112, n, -n + 2 * n, n, 0.5f, &a, 11, &b, 12, -1.5f, &c, 13);
}

void call_dgemm(int64_t n)
{
    double a = 1.25, b = 2.5, c = 3.75;
    cblas_dgemm64_(102, 112, 113, n, n, n, 0.5, &a, 11, &b, 12, -1.5, &c, 13);
}

int call_dgetrf(int n)
{
    double a = 6.5;
    int pivot = 0, info = 1;
    return dgetrf_(&n, &n, &a, &n, &pivot, &info) + pivot + info;
}

int64_t call_dsyevr(int64_t n, int64_t lwork)
{
    double a = 1.5, vl = 2.5, vu = 3.5, abstol = 4.5, w = 5.5, z = 6.5, work = 7.5;
    int64_t il = 8, iu = 9, m = 0, ldz = 10, isuppz = 0, iwork = 0, liwork = 11, info = 0;
    dsyevr_64_("V", "A", "L", &n, &a, &n, &vl, &vu, &il, &iu, &abstol, &m, &w, &z, &ldz, &isuppz,
               &work, &lwork, &iwork, &liwork, &info, 1, 1, 1);
    return m + isuppz + iwork + info;
}
