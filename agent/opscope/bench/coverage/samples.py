"""Read the samples that perf has taken, and tell whose processor time each one is."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from os.path import basename
from pathlib import Path
from typing import NamedTuple

from opscope.errors import OpscopeError

INTERPRETER = "interpreter"
OWN = "opscope"

_HEAD = re.compile(r"\s*(\d+)\s+(\d+)\.(\d{9}):")
_FRAME = re.compile(r"\s+[0-9a-f]+ (.*) \((.*)\)$")
# Functions of the kernel and the C library: their callers do the work.
_SERVANTS = re.compile(r"\[|(ld-|libc[.-]|libm[.-]|libpthread|libdl|libstdc\+\+|libgcc_s|ld-musl)")
_INTERPRETERS = re.compile(r"(python\d?[\d.]*|libpython.*)$")


class Sample(NamedTuple):
    tid: int
    ns: int
    """CLOCK_MONOTONIC."""
    owner: str
    """INTERPRETER, OWN, or the name of another library."""
    symbol: str


def read_samples(recorded: Path) -> Iterator[Sample]:
    """All samples, in perf's order. Raises OpscopeError if perf cannot read its file."""
    command = ["perf", "script", "--ns", "--no-inline", "--max-stack", "12"]
    fields = ["--fields", "tid,time,ip,sym,dso", "--input", str(recorded)]
    with subprocess.Popen(
        [*command, *fields], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield from parse(process.stdout)
    if process.returncode != 0:
        raise OpscopeError("perf script failed")


def parse(lines: Iterable[str]) -> Iterator[Sample]:
    """The samples in the text that `perf script` prints: a head, and a line for each frame."""
    head: re.Match[str] | None = None
    frames: list[tuple[str, str]] = []
    for line in lines:
        if frame := _FRAME.match(line):
            frames.append((frame[1], frame[2]))
        elif found := _HEAD.match(line):
            if head is not None:
                yield _sample(head, frames)
            head, frames = found, []
    if head is not None:
        yield _sample(head, frames)


def _sample(head: re.Match[str], frames: list[tuple[str, str]]) -> Sample:
    ns = int(head[2]) * 10**9 + int(head[3])
    for symbol, library in frames:
        if not _SERVANTS.match(basename(library)):
            return Sample(int(head[1]), ns, _owner(library), symbol)
    symbol, library = frames[0] if frames else ("no stack", "unknown")
    return Sample(int(head[1]), ns, basename(library), symbol)


def _owner(library: str) -> str:
    name = basename(library)
    if _INTERPRETERS.match(name) or "/lib-dynload/" in library:
        return INTERPRETER
    if "/opscope/" in library or "_cffi_backend" in name or name.startswith("libopscope"):
        return OWN
    return name
