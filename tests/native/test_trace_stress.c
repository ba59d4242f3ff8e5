/* tests/native/test_trace_stress.c -- eight working threads, with labels, tasks, nesting and async
 * ranges, while traces start and stop one after another and the process forks: each trace is
 * consistent. */
#define _GNU_SOURCE
#include "opscope/debug_info.h"
#include "opscope/fork.h"
#include "opscope/memory.h"
#include "read_trace.h"

#include <pthread.h>

enum { THREADS = 8, TRACES = 40 };

static bool is_over; /* atomic */

static int task(void *arg)
{
    run_ranges(arg, 3);
    return OPSCOPE_OK;
}

static void work(int turn)
{
    opscope_range outer, inner;
    opscope_range_open(&outer, op_named("outer"), NULL);
    for (int i = 0; i < 20; i++) {
        opscope_range_open(&inner, op_named("inner"), NULL);
        opscope_note_allocation(64);
        run_ranges(op_named("leaf"), 5);
        opscope_range_close(&inner);
    }
    if (turn % 4 == 0) {
        opscope_debug_info_guard guard;
        opscope_future *future;
        int result;
        CHECK_EQUAL(opscope_debug_info_push("turn", turn % 8 == 0 ? "even" : "odd", &guard),
                    OPSCOPE_OK);
        CHECK_EQUAL(opscope_fork(task, (void *)(uintptr_t)op_named("task"), &future), OPSCOPE_OK);
        CHECK_EQUAL(opscope_wait(future, &result), OPSCOPE_OK);
        opscope_future_release(future);
        opscope_debug_info_pop(&guard);
    }
    opscope_range_close(&outer);
}

static void *keep_working(void *unused)
{
    (void)unused;
    for (int turn = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); turn++) {
        work(turn);
    }
    return NULL;
}

static void *come_and_go(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
        pthread_t thread;
        CHECK_EQUAL(pthread_create(&thread, NULL, (void *(*)(void *))(void *)work, NULL), 0);
        CHECK_EQUAL(pthread_join(thread, NULL), 0);
    }
    return NULL;
}

/* Checks that the records of a block are in order of their starts, each inside the ranges open
 * around it, and that the trace has all their names. */
static void check_nesting(const struct trace *trace, const opscope_trace_block *block)
{
    const opscope_trace_record *open[16];
    int depth = 0;
    uint64_t before = 0;
    for (const opscope_trace_record *r = NULL; (r = trace_record(block, r)) != NULL;) {
        if (r->kind != OPSCOPE_TRACE_RANGE && r->kind != OPSCOPE_TRACE_TASK) {
            continue;
        }
        CHECK(r->start_ticks >= before);
        CHECK(r->end_ticks == 0 || r->end_ticks >= r->start_ticks);
        before = r->start_ticks;
        while (depth > 0 && open[depth - 1]->end_ticks != 0 &&
               open[depth - 1]->end_ticks <= r->start_ticks) {
            depth--;
        }
        CHECK(depth < 16);
        CHECK(depth == 0 || open[depth - 1]->end_ticks == 0 ||
              (r->end_ticks != 0 && r->end_ticks <= open[depth - 1]->end_ticks));
        open[depth++] = r;
    }
    (void)trace;
}

static void check_trace(const struct trace *trace)
{
    static uint8_t is_named[1024];
    memset(is_named, 0, sizeof is_named);
    for (struct record_at at = {0}; next_record(trace, &at);) {
        if (at.record->kind == OPSCOPE_TRACE_NAME) {
            is_named[at.record->op] = 1;
        }
    }
    for (struct record_at at = {0}; next_record(trace, &at);) {
        CHECK(at.record->kind >= OPSCOPE_TRACE_RANGE &&
              at.record->kind <= OPSCOPE_TRACE_ALLOCATION);
        if (at.record->kind == OPSCOPE_TRACE_RANGE) {
            CHECK(is_named[at.record->op]);
        }
    }
    for (const opscope_trace_block *block = NULL; (block = trace_block(trace, block)) != NULL;) {
        check_nesting(trace, block);
        CHECK(block->thread_id != 0 && block->system_id != 0);
        CHECK(block->taken_ticks <= block->ready_ticks);
    }
}

static void traces_start_and_stop_while_threads_work(void)
{
    pthread_t threads[THREADS];
    uint64_t ranges = 0, ended;
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, i == 0 ? come_and_go : keep_working, NULL),
                    0);
    }
    for (int i = 0; i < TRACES || ranges == 0; i++) {
        make_trace_file();
        CHECK_EQUAL(start_trace_with(i % 3 == 0 ? 1u << 20 : 8u << 20, 0,
                                     i % 5 == 0 ? OPSCOPE_TRACE_SHAPES : 0),
                    OPSCOPE_OK);
        work(0);
        if (i % 10 == 5) {
            pid_t pid = fork();
            if (pid == 0) {
                work(1);
                _exit(opscope_has_callbacks());
            }
            CHECK(check_child(pid));
        }
        struct trace trace = stop_and_read_trace();
        check_trace(&trace);
        ranges += trace_count(&trace, OPSCOPE_TRACE_RANGE, 0, &ended);
        trace_free(&trace);
    }
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
    CHECK(!opscope_has_callbacks());
    printf("%llu ranges\n", (unsigned long long)ranges);
}

int main(void)
{
    RUN(traces_start_and_stop_while_threads_work);
    return 0;
}
