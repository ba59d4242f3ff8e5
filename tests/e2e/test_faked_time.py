"""A program's clocks may be changed by a library before the C library, as libfaketime does, or step
back. It runs as if unobserved, and calls and durations are those of the real time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.observed_host import OPSCOPE, TIMEOUT_S, ObservedHost
from tests.e2e.test_hard_places import metric
from tests.e2e.test_process_life import added, run_both, script

LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile long back_s;

void step_back(long seconds)
{
    back_s = seconds;
}

static long long elapsed_ns(const struct timespec *first, const struct timespec *now)
{
    return (now->tv_sec - first->tv_sec) * 1000000000LL + (now->tv_nsec - first->tv_nsec);
}

/* Of CPU clocks, too: libfaketime changes them. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    static int (*real)(clockid_t, struct timespec *);
    static struct timespec first[16];
    const char *faked = getenv("FAKED");
    if (real == 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    int status = real(id, out);
    struct timespec *begin = &first[(unsigned)id % 16];
    if (begin->tv_sec == 0 && begin->tv_nsec == 0) {
        *begin = *out;
    }
    if (faked != 0 && strcmp(faked, "stopped") == 0) {
        *out = *begin;
    } else if (faked != 0 && strcmp(faked, "backwards") == 0) {
        const long long elapsed = elapsed_ns(begin, out), ns = 1000000000LL;
        const long long faked_ns = (begin->tv_sec + 86400) * ns + begin->tv_nsec - elapsed;
        *out = (struct timespec){.tv_sec = faked_ns / ns, .tv_nsec = faked_ns % ns};
    } else if (faked != 0 && strcmp(faked, "ten times") == 0) {
        const long long elapsed = elapsed_ns(begin, out) * 10, ns = 1000000000LL;
        const long long faked_ns = begin->tv_sec * ns + begin->tv_nsec + elapsed;
        *out = (struct timespec){.tv_sec = faked_ns / ns, .tv_nsec = faked_ns % ns};
    } else if (id == CLOCK_REALTIME) {
        out->tv_sec -= back_s;
    }
    return status;
}

/* With a clock that has stopped or runs backwards, a time that has not come never comes. */
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *end)
{
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (getenv("FAKED") != 0) {
        return pthread_cond_wait(cond, lock);
    }
    if (real == 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    }
    return real(cond, lock, end);
}
"""

FAKED = pytest.mark.parametrize("faked", ["stopped", "backwards", "ten times"])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clock")
    source, library = directory / "clock.c", directory / "clock.so"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def test_a_clock_that_steps_back_changes_no_count_and_no_duration(
    host: ObservedHost, tmp_path: Path, library: Path
) -> None:
    program = script(
        tmp_path,
        """
        import ctypes, time
        library = ctypes.CDLL(os.environ["CLOCK"])
        before = time.time()
        work(100)
        library.step_back(ctypes.c_long(86400))
        assert time.time() < before
        work(100)
        if os.fork() == 0:
            library.step_back(ctypes.c_long(2 * 86400))
            work(100)
            os._exit(0)
        os.wait()
        """,
    )
    host.environ |= {"CLOCK": str(library)}
    command = ("env", f"LD_PRELOAD={library}", sys.executable, program)
    run_both(host, *command)
    assert added(host) == 300
    seconds = metric(host, "opscope_op_duration_seconds_sum", op="numpy::add")
    assert 0 < seconds < 3600


@FAKED
def test_each_call_takes_its_real_time(
    host: ObservedHost, tmp_path: Path, library: Path, faked: str
) -> None:
    program = script(
        tmp_path,
        """
        import opscope
        begin = os.times()
        with opscope.record_function("working"):
            while (now := os.times()).user - begin.user < 0.3:
                work(10)
        print("on")
        """,
    )
    run_both(host, "env", f"LD_PRELOAD={library}", f"FAKED={faked}", sys.executable, program)
    assert added(host) % 10 == 0 and added(host) > 0
    assert 0.3 < metric(host, "opscope_op_duration_seconds_sum", op="working") < 60


@FAKED
def test_windows_open_all_the_same(
    host: ObservedHost, tmp_path: Path, library: Path, faked: str
) -> None:
    program = script(
        tmp_path,
        """
        begin = os.times()
        while os.times().user - begin.user < 1:
            work(10)
        print("on")
        """,
    )
    command = str(OPSCOPE), "run", "--sampling", "windows", "--"
    preload = "env", f"LD_PRELOAD={library}", f"FAKED={faked}"
    ran = subprocess.run(
        [*command, *preload, sys.executable, program],
        env=host.environ,
        capture_output=True,
        timeout=TIMEOUT_S,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"on\n", b"")
    assert added(host) > 0
