"""`make run`: observe an unmodified scikit-learn program, from its operators to a Prometheus page.

Starts a host agent on a free loopback port, runs demo_digits.py under `opscope run` with 10
trainings, or as many as its argument says, shows `opscope top` during and after the run, and reads
`/metrics` as Prometheus would. It ends the processes that it started, by process id. Needs the
extra `demo`, but no server and no terminal.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.request import urlopen

from opscope.bench import segment_directory

_OPSCOPE = Path(sysconfig.get_path("scripts")) / "opscope"
_PROGRAM = Path(__file__).with_name("demo_digits.py")
_TRAININGS = 10
_LOOK_EVERY_S = 3.0
_METRICS_SHOWN = 8
_SETTINGS = {
    # The agent adds up an ended program in its next pass; here that is the scrape at the end.
    "OPSCOPE_INTERVAL_S": "3600",
    # Threads that wait for each other do not speed up matrices this small.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}

_Process = TypeVar("_Process", bound="subprocess.Popen[bytes] | subprocess.Popen[str]")


def main(trainings: int = _TRAININGS) -> None:
    with segment_directory() as directory:
        environ = os.environ | _SETTINGS | {"OPSCOPE_DIR": directory}
        if not sys.stdout.isatty():
            environ["COLUMNS"] = "100"
        with _agent(environ) as url, tempfile.TemporaryFile() as printed:
            _say(f"opscope run --sampling 1 -- python {_PROGRAM.name} {trainings}")
            observed = [str(_OPSCOPE), "run", "--sampling", "1", "--", sys.executable]
            with _ended(
                subprocess.Popen([*observed, _PROGRAM, str(trainings)], env=environ, stdout=printed)
            ) as program:
                while _is_running(program):
                    _say(f"opscope top --once   (process {program.pid} is at work)")
                    _opscope_top(environ)
            _say("what the program printed")
            printed.seek(0)
            sys.stdout.buffer.writelines(printed.readlines()[-4:])
            if program.returncode != 0:
                raise SystemExit(f"the program ended with status {program.returncode}")
            _say("opscope top --once   (it has ended)")
            _opscope_top(environ)
            _say(f"curl {url}")
            _show_metrics(url)
    _say("your own programs")
    print("opscope agent                    serves http://127.0.0.1:9464/metrics")
    print("opscope run -- python train.py   observes a program, as it is")
    print("opscope top                      shows what runs now")


@contextmanager
def _agent(environ: Mapping[str, str]) -> Iterator[str]:
    """Runs an agent until the end of the block; yields the address of its metrics."""
    _say("opscope agent --listen 127.0.0.1:0")
    with _ended(
        subprocess.Popen(
            [_OPSCOPE, "agent", "--listen", "127.0.0.1:0"],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    ) as agent:
        assert agent.stdout is not None
        said = agent.stdout.readline()
        print(said, end="")
        urls = [word for word in said.split() if word.startswith("http://")]
        if not urls:
            raise SystemExit(f"the agent did not start: {agent.stdout.read()}")
        yield urls[0].rstrip("/") + "/metrics"  # the first is the live page's


@contextmanager
def _ended(process: _Process) -> Iterator[_Process]:
    """The process; ends it and waits for it after the block."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _is_running(program: subprocess.Popen[bytes]) -> bool:
    """Whether it still runs after the refresh interval; returns as soon as it has ended."""
    try:
        program.wait(_LOOK_EVERY_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _opscope_top(environ: Mapping[str, str]) -> None:
    subprocess.run([_OPSCOPE, "top", "--once", "--limit", "12"], env=environ, check=True)


def _show_metrics(url: str) -> None:
    """Prints the busiest operators' lines of the page, and the number of lines."""
    with urlopen(url) as page:
        lines = page.read().decode().splitlines()
    calls = [line for line in lines if line.startswith("opscope_op_duration_seconds_count{")]
    calls.sort(key=lambda line: float(line.split()[-1]), reverse=True)
    print(*calls[:_METRICS_SHOWN], sep="\n")
    print(f"... {len(calls)} operators in {len(lines)} lines")


def _say(heading: str) -> None:
    print(f"\n== {heading}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
