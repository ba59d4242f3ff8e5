"""Make directories as an attacker would, for fuzz_directories.py.

One random generator draws everything, so that a seed reproduces it. Everything is inside one
directory, which contains nothing else.
"""

import gzip
import os
import random
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from opscope.host.state_file import NAME as STATE_NAME
from opscope.segments import layout
from tests.host.fuzz_host import mutated
from tests.segments.segment_writer import Process, Range, SegmentWriter
from tests.segments.test_exemplars import entry
from tests.timeline.trace_writer import TraceWriter

PRECIOUS = b"precious"
USERS = (0, 1000, 1001, 65534, 4_000_000_000)
_IS_ROOT = os.geteuid() == 0
_WORDS = (0, 1, 255, 1 << 31, (1 << 32) - 1, (1 << 53) + 1, 1 << 62, 1 << 63, (1 << 64) - 1)
_OLD = Path(__file__).parent.parent / "formats" / "v1.seg.gz"
_NAMES = (
    b"new\nline.seg",
    b"\x1b[2J.seg",
    b"-rf",
    b"settings",
    b".settings-1",
    b"agent.state",
    b"agent.state.x.new",
    b"1-2.why",
    b"1-2.why~",
    b"9" * 11 + b"-34-0123456789abcdef.seg",
    b"12-" + b"9" * 20 + b"-0123456789abcdef.seg",
    b"\xff\xfe-1-0123456789abcdef.seg",
    b"1" * 255,
)


def process(chosen: random.Random) -> Process:
    """This live process, or a pid without a process."""
    if chosen.random() < 0.7:
        return Process(random_id=chosen.randbytes(16))
    return Process(
        2**31 + chosen.randrange(9), chosen.randrange(99), random_id=chosen.randbytes(16)
    )


def segment(chosen: random.Random, user: int) -> tuple[Process, bytes]:
    one = process(chosen)
    writer = SegmentWriter(one, liveness=chosen.randrange(2), uid=user)
    if chosen.random() < 0.3:
        writer.header.update(
            {
                name: chosen.choice(_WORDS) >> 2
                for name in (
                    "dropped_count",
                    "folded_count",
                    "uncounted_cost_ps",
                    "adaptation_count",
                )
            },
            ticks_per_second=chosen.choice((10**5, 10**9, 10**11)),
        )
    weight = chosen.choice((1.0, 1.0, 3.5, 1e6))
    labels = tuple((f"l{n}", f"{n}") for n in range(chosen.choice((0, 1, 2, 1000))))
    for number in range(chosen.choice((1, 5, 80))):
        name = chosen.choice(("core::mm", "a.b", "a_b", f"op{number}", "ö\u200f", "x" * 300))
        duration = 10.0 ** -chosen.randrange(9)
        writer.add([Range(name, duration, 1, weight, duration / 2, chosen.randrange(1, 5), labels)])
    writer.notes({"service.name": chosen.choice(("web", "x\ny", "other", "", "s" * 300))})
    writer.notes({f"resource.{n}": "v" for n in range(chosen.choice((0, 40)))})
    writer.notes({"program": "p", "torch": "2.13", "job.id": "7", "bridge.torch": "attached"})
    writer.usage(f"api{chosen.randrange(9)}")
    writer.metric("opscope.memory.live", "cpu", chosen.choice(_WORDS), layout.METRIC_GAUGE)
    writer.metric("opscope.memory.allocated", "cpu", (1 << 62) - 1, layout.METRIC_COUNTER)
    writer.variance(None, float(chosen.choice(_WORDS)), chosen.choice((0.0, 1e-3, 1e15)))
    raw = bytearray(writer.to_bytes())
    if chosen.random() < 0.3:
        raw += _exemplars(chosen, raw)
    return one, bytes(raw)


def _exemplars(chosen: random.Random, raw: bytearray) -> bytes:
    """One more chunk, which the header then counts."""
    key = 2 | 1 << 32
    entries = [entry(key, chosen.choice(_WORDS), chosen.choice(_WORDS), n) for n in range(4)]
    _patch(raw, "chunk_count", (len(raw) - layout.HEADER_BYTES) // layout.CHUNK_BYTES + 1)
    head = np.zeros(1, layout.CHUNK)
    head["kind"], head["used"] = layout.EXEMPLARS, len(entries)
    chunk = head.tobytes().ljust(layout.CHUNK_HEADER_BYTES, b"\0") + b"".join(entries)
    return chunk.ljust(layout.CHUNK_BYTES, b"\0")


def _patch(raw: bytearray, field: str, value: int) -> None:
    fields: Any = layout.HEADER.fields
    dtype, offset = fields[field][:2]
    raw[offset : offset + dtype.itemsize] = value.to_bytes(dtype.itemsize, "little")


def _harmed(chosen: random.Random, one: Process, raw: bytes) -> bytes:
    """Changes bytes anywhere, mostly without changing the file's name."""
    out = bytearray(mutated(raw, chosen) if chosen.random() < 0.5 else raw)
    if len(out) > layout.HEADER_BYTES and chosen.random() < 0.9:
        for field, value in (
            ("pid", one.pid),
            ("process_start", one.process_start),
            ("random_id", int.from_bytes(one.random_id, "little")),
        ):
            _patch(out, field, value)
    if len(out) > layout.HEADER_BYTES and chosen.random() < 0.4:
        begin, size = layout.CONTROL_OFFSET, layout.CONTROL.itemsize
        end = layout.ANSWER_OFFSET + layout.ANSWER.itemsize
        kind = chosen.randrange(3)
        if kind == 0:
            out[begin:end] = b"\xff" * (end - begin)
        elif kind == 1:
            out[begin : begin + size] = chosen.randbytes(size)
        else:
            at = begin + 8 * chosen.randrange(size // 8)
            out[at : at + 8] = chosen.choice(_WORDS).to_bytes(8, "little")
    return bytes(out)


def fill(directory: Path, chosen: random.Random, corpus: list[bytes], user: int) -> None:
    """`corpus`: saved states of agents, which come back damaged. `user`: who it will belong to."""
    for _ in range(chosen.randrange(1, 9)):
        kind = chosen.randrange(10)
        with suppress(FileExistsError, IsADirectoryError, FileNotFoundError, NotADirectoryError):
            if kind < 6:
                _put_segment(directory, chosen, user)
            elif kind == 6:
                _put(directory, chosen.choice(_NAMES), chosen, chosen.randbytes(40))
            elif kind == 7:
                target = chosen.choice(
                    (b"5:denied:x", b"::", b"9" * 30 + b":a:b", b"x", b"-5:\x1b:")
                )
                name = b"%d-%d.why" % (chosen.choice((1, os.getpid())), chosen.randrange(99))
                os.symlink(target, os.fsencode(directory) + b"/" + name)
            elif kind == 8:
                lines = (
                    "enabled=false *\n",
                    "sampling=nan x\n",
                    "reset *\n",
                    "\0\n",
                    "a=b\n" * 999,
                )
                text = "".join(chosen.choices(lines, k=3)).encode()
                _write(os.fsencode(directory / "settings"), text)
            elif corpus:
                raw = mutated_tail(chosen.choice(corpus), chosen)
                _write(os.fsencode(directory / STATE_NAME), raw)
    if chosen.random() < 0.1:
        then = time.time() - 3600
        for name in os.listdir(os.fsencode(directory)):
            os.utime(os.fsencode(directory) + b"/" + name, (then, then), follow_symlinks=False)


def _put_segment(directory: Path, chosen: random.Random, user: int) -> None:
    if chosen.random() < 0.1:
        raw = gzip.decompress(_OLD.read_bytes())
        one = process(chosen)
    else:
        one, raw = segment(chosen, user)
    raw = _harmed(chosen, one, raw)
    name = os.fsencode(("." if chosen.random() < 0.05 else "") + one.file_name)
    _put(directory, name, chosen, raw)
    if chosen.random() < 0.6:
        trace = _trace(chosen, one, raw, user)
        _put(directory, name + b".trace", chosen, trace)


def _trace(chosen: random.Random, one: Process, raw: bytes, user: int) -> bytes:
    """Mostly the next expected one, because the block's serial goes up by one."""
    serial = 1
    if len(raw) > layout.HEADER_BYTES:
        block = np.frombuffer(raw, layout.CONTROL, 1, layout.CONTROL_OFFSET)[0]
        serial = (int(block["trace_serial"]) + 1) % 2**64
    now = time.time_ns()
    writer = TraceWriter(
        pid=one.pid,
        uid=user,
        serial=serial,
        anchor_unix_ns=now,
        end_anchor_unix_ns=now + chosen.choice((0, 10**9, -5)),
        end_anchor_ticks=chosen.choice((0, 10**9, 1 << 62)),
        ticks_per_second=chosen.choice((10**5, 10**9, 10**11)),
        state=chosen.choice((1, 2, 2)),
    )
    thread = writer.thread()
    for number in range(20):
        thread.labels(trace_id="0" * 31 + "1", span_id="0" * 15 + "1", other="x")
        thread.range(f"op{number}", 10 * number + 1, 10 * number + chosen.choice((0, 9, 1 << 60)))
    made = writer.to_bytes()
    return mutated_tail(made, chosen) if chosen.random() < 0.5 else made


def mutated_tail(raw: bytes, chosen: random.Random) -> bytes:
    """Changes a few bytes or words, or cuts off the end."""
    out = bytearray(raw)
    for _ in range(chosen.randrange(1, 5)):
        at = chosen.randrange(max(len(out), 1))
        if chosen.random() < 0.5:
            out[at : at + 8] = chosen.choice(_WORDS).to_bytes(8, "little")
        else:
            out[at : at + 1] = chosen.randbytes(1)
    return bytes(out if chosen.random() < 0.8 else out[: chosen.randrange(max(len(out), 1))])


def _put(directory: Path, name: bytes, chosen: random.Random, raw: bytes) -> None:
    """Mostly a file; sometimes another kind of entry."""
    path = os.fsencode(directory) + b"/" + name
    kind = chosen.randrange(20)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        os.symlink(chosen.choice((b"../precious", name, b"/nothing", b"/dev/zero")), path)
    elif kind == 2:
        os.mkdir(path)
    else:
        _write(path, raw, chosen.choice((0, 1, 4095, 1 << 20, 16 << 20, 1 << 40)), kind == 3)
    if kind == 4 and _IS_ROOT and os.path.lexists(path):
        os.chown(path, chosen.choice(USERS), -1, follow_symlinks=False)


def _write(path: bytes, raw: bytes, size: int = 0, is_resized: bool = False) -> None:
    """Never follows a link, which may lead out of the directory."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    with suppress(OSError), open(os.open(path, flags, 0o600), "wb") as file:
        file.write(raw)
        file.flush()
        if is_resized:
            os.ftruncate(file.fileno(), size)


def directories(root: Path, chosen: random.Random, corpus: list[bytes]) -> None:
    """Some in `root`, in place of /dev/shm: of users, under others' names, and what is none.

    Links lead to `root`/precious, which nothing may change.
    """
    (root / "precious").write_bytes(PRECIOUS)
    for _ in range(chosen.randrange(1, 5)):
        user = chosen.choice(USERS)
        name = chosen.choice((f"{user}", f"{user}", f"0{user}", "x", "\u0663", "y\n", "0"))
        path = root / f"opscope-{name}"
        kind = chosen.randrange(12)
        with suppress(FileExistsError):
            if kind == 0:
                path.touch(exist_ok=False)
            elif kind == 1:
                path.symlink_to(chosen.choice(("/nothing", str(root))))
            elif kind == 2:
                os.mkfifo(path)
            else:
                path.mkdir(mode=0o700)
                owner = chosen.choice((user, user, user, 1000)) if _IS_ROOT else os.geteuid()
                fill(path, chosen, corpus, owner)
                if _IS_ROOT:
                    give(path, owner)
                if kind == 3:
                    path.chmod(0o777)


def give(directory: Path, user: int) -> None:
    """The directory and its files; files of other users keep their owner."""
    os.chown(directory, user, -1)
    for entry_ in os.scandir(os.fsencode(directory)):
        if entry_.stat(follow_symlinks=False).st_uid == os.geteuid():
            os.chown(entry_.path, user, -1, follow_symlinks=False)
