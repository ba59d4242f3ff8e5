/* tests/native/test_cpu.c -- the processor time of the threads that open ranges: to the point, also
 * of those that run now, are over, or are another process's. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomics.h"
#include "check.h"
#include "record/thread.h"

enum { BURN_NS = 20000000 };

static uint64_t own_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t ns)
{
    for (const uint64_t end = own_ns() + ns; own_ns() < end;) {
    }
}

static void a_thread_counts_from_when_it_came_on(void)
{
    burn(BURN_NS);
    const uint64_t before = own_ns();
    (void)opscope_thread_id();
    const uint64_t first = opscope__registry_cpu_ns();
    CHECK(first <= own_ns() - before);
    burn(BURN_NS);
    const uint64_t second = opscope__registry_cpu_ns();
    CHECK(second - first >= BURN_NS);
    CHECK(second <= own_ns() - before);
}

/* Told by the other thread. */
static uint64_t other_ns;
static bool is_over;

static void *work(void *unused)
{
    (void)opscope_thread_id();
    const uint64_t start = own_ns();
    while (!opscope__load_relaxed(&is_over)) {
        opscope__store_release(&other_ns, own_ns() - start); /* partner: the acquire load below */
    }
    return unused;
}

static void a_thread_that_runs_now_is_counted_to_the_point_and_one_that_is_over_for_ever(void)
{
    pthread_t other;
    opscope__store_relaxed(&is_over, false);
    const uint64_t before = opscope__registry_cpu_ns();
    CHECK_EQUAL(pthread_create(&other, NULL, work, NULL), 0);
    uint64_t told;
    do {
        told = opscope__load_acquire(&other_ns);
        CHECK(opscope__registry_cpu_ns() - before >= told);
    } while (told < BURN_NS);
    opscope__store_relaxed(&is_over, true);
    pthread_join(other, NULL);
    CHECK(opscope__registry_cpu_ns() - before >= opscope__load_acquire(&other_ns));
}

static void a_forked_child_begins_anew(void)
{
    (void)opscope_thread_id();
    burn(BURN_NS);
    pid_t child = fork();
    if (child == 0) {
        _exit(opscope__registry_cpu_ns() <= own_ns() ? 0 : 1);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
}

int main(void)
{
    RUN(a_thread_counts_from_when_it_came_on);
    RUN(a_thread_that_runs_now_is_counted_to_the_point_and_one_that_is_over_for_ever);
    RUN(a_forked_child_begins_anew);
    return 0;
}
