/* bench/bench.c -- the timed loops of private/bench.h. The caller chooses the cases and judges the
 * results. */
#include "private/bench.h"

#include "base/clock.h"

typedef void operator_function(const opscope_op *op);

/* The operator's work: it does nothing, but the compiler moves no memory access across it. */
static inline void work(void)
{
    __asm__ volatile("" : : : "memory");
}

static void run_bare(const opscope_op *op)
{
    (void)op;
    work();
}

static void run_two_reads(const opscope_op *op)
{
    (void)op;
    uint64_t start = opscope__ticks();
    work();
    uint64_t ticks = opscope__ticks() - start;
    __asm__ volatile("" : : "r"(ticks));
}

static void run_range(const opscope_op *op)
{
    opscope_range range;
    opscope_range_open(&range, op, NULL);
    work();
    opscope_range_close(&range);
}

int opscope_bench_ns(opscope_bench_loop loop, uint64_t count, double *out)
{
    static operator_function *const functions[] = {run_bare, run_two_reads, run_range};
    opscope__clock clock;
    const opscope_op *op;

    if ((unsigned)loop >= sizeof functions / sizeof functions[0] || count == 0) {
        return OPSCOPE_ERR_INVALID;
    }
    int status = opscope_op_intern("bench::empty", "", OPSCOPE_FUNCTION, OPSCOPE_OTHER, &op);
    if (status != OPSCOPE_OK) {
        return status;
    }
    opscope__clock_start(&clock);
    operator_function *function = functions[loop];
    uint64_t start_ns = opscope__monotonic_ns();
    for (uint64_t i = 0; i < count; i++) {
        /* Hides the pointer's target from the compiler, so that each iteration makes a real
         * call. */
        __asm__ volatile("" : "+r"(function));
        function(op);
    }
    *out = (double)(opscope__monotonic_ns() - start_ns) / (double)count;
    return OPSCOPE_OK;
}

int opscope_bench_empty_start(const opscope_range *fn, void *user, void **context)
{
    (void)fn;
    (void)user;
    (void)context;
    return OPSCOPE_OK;
}

int opscope_bench_empty_end(const opscope_range *fn, void *user, void *context)
{
    (void)fn;
    (void)user;
    (void)context;
    return OPSCOPE_OK;
}
