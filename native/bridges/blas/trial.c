/* blas/trial.c -- verifies that trampolines deliver all arguments, with a signature of CBLAS and
 * one of Fortran; measures the cost of a range. */
#include <string.h>

#include "bridges/blas/slots.h"
#include "recorder/cost_trial.h"

enum { TURNS = 10, CALLS = 10, LONGEST = 28 };

/* A typical cost of the machines measured so far. */
static const uint64_t USUAL_PS = 12000;

typedef float *const pointer;

/* cblas_sgemm with integers of 64 bits: enums, floats among the words, and a stack. */
typedef void sgemm_function(int, int, int, int64_t, int64_t, int64_t, float, pointer, int64_t,
                            pointer, int64_t, float, pointer, int64_t);

/* What the functions below got; only the thread that attaches calls them. */
static size_t call_count;
static size_t arrived_count;
static float place[3];

static void receive_sgemm(int order, int transa, int transb, int64_t m, int64_t n, int64_t k,
                          float alpha, pointer a, int64_t lda, pointer b, int64_t ldb, float beta,
                          pointer c, int64_t ldc)
{
    const bool has_numbers = memcmp(&alpha, &(float){1.5f}, sizeof alpha) == 0 &&
                             memcmp(&beta, &(float){-0.25f}, sizeof beta) == 0;
    arrived_count += order == 101 && transa == 111 && transb == -112 && m == INT64_C(1) << 33 &&
                     n == -3 && k == 4 && has_numbers && a == &place[0] && lda == 5 &&
                     b == &place[1] && ldb == -6 && c == &place[2] && ldc == INT64_MIN;
}

/* A routine of Fortran: as many words as fit, the last of them hidden lengths. */
/* clang-format off */
#define EACH_WORD(X)                                                                               \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)    \
    X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26)
/* clang-format on */
#define PARAMETER(i) const int32_t *p##i,
#define ARGUMENT(i) &numbers[i],
#define COMPARE(i) &&p##i == &numbers[i]
typedef void fortran_function(EACH_WORD(PARAMETER) size_t);

static const int32_t numbers[LONGEST] = {100, 100}; /* of a matrix that is worth a range */

static void receive_fortran(EACH_WORD(PARAMETER) size_t length)
{
    arrived_count += length == SIZE_MAX EACH_WORD(COMPARE);
}

static const struct opscope__blas_routine sgemm = {.name = "sgemm",
                                                   .types = "s",
                                                   .level = 0,
                                                   .words = 14,
                                                   .cblas_sizes = {3, 3, -1},
                                                   .workspace = -1};
static const struct opscope__blas_routine fortran = {.name = "fortran",
                                                     .types = "s",
                                                     .level = 0,
                                                     .words = LONGEST,
                                                     .sizes = {0, 1, -1},
                                                     .workspace = -1};

static void call_both(sgemm_function *first, fortran_function *second)
{
    call_count += 2;
    first(101, 111, -112, INT64_C(1) << 33, -3, 4, 1.5f, &place[0], 5, &place[1], -6, -0.25f,
          &place[2], INT64_MIN);
    second(EACH_WORD(ARGUMENT) SIZE_MAX);
}

/* The extra cost of a range in picoseconds; 0: unknown. */
static uint64_t try_calls(sgemm_function *first, fortran_function *second)
{
    opscope__cost_trial trial;
    if (!opscope__cost_trial_begin(&trial)) {
        call_both(first, second);
        return 0;
    }
    for (int turn = 0; turn < TURNS; turn++) {
        opscope__cost_trial_set(&trial, turn % 2 != 0);
        call_both(first, second); /* also warms the caches */
        if (!opscope__cost_trial_start(&trial)) {
            break;
        }
        for (int i = 0; i < CALLS; i++) {
            call_both(first, second);
        }
        opscope__cost_trial_stop(&trial);
    }
    return opscope__cost_trial_end(&trial, CALLS * 2);
}

static bool run(void)
{
    const struct opscope__blas_symbol by_value = {
        .routine = &sgemm, .type = 's', .is_cblas = true, .has_64_bit = true};
    const struct opscope__blas_symbol by_place = {.routine = &fortran, .type = 's'};
    /* Their ranges stay out of all tables, and so need no name. */
    const opscope_op *op = opscope_op_other();
    sgemm_function *first = (sgemm_function *)opscope__blas_trampoline(
        &by_value, (opscope__slot_function)receive_sgemm, op);
    fortran_function *second = (fortran_function *)opscope__blas_trampoline(
        &by_place, (opscope__slot_function)receive_fortran, op);
    if (first == NULL || second == NULL) {
        return false;
    }
    const bool was_recording = opscope_recording_set(false);
    call_both(first, second);
    const uint64_t extra_ps = try_calls(first, second);
    call_both(first, second);
    (void)opscope_recording_set(was_recording);
    opscope__blas_set_cost(extra_ps != 0 ? extra_ps : USUAL_PS);
    return arrived_count == call_count;
}

bool opscope__blas_trial(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
    static enum { UNKNOWN, WORKS, FAILS } answer;
    if (answer == UNKNOWN) {
        answer = run() ? WORKS : FAILS;
    }
    return answer == WORKS;
#else
    return false;
#endif
}
