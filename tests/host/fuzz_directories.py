"""Hostile directories as input of every reader: agent, set, trace, ps, doctor, top, exporters.

Each round makes directories of several users (hostile_directories.py) beside a valid one, and runs
every reader on them. It asserts: no exception; exact counts of the valid directory; the next agent
loads a saved state; no step takes long; memory does not grow. `make fuzz-agent` runs it for
FUZZ_SECONDS; test_fuzz_host.py runs a few rounds. Usage: fuzz_directories.py SECONDS [SEED]
"""

import glob
import io
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from rich.console import Console

from opscope.cli import ps
from opscope.cli import set as set_command
from opscope.config import Config, load
from opscope.control import control_block, control_many, trace
from opscope.host.host import Host
from opscope.host.pid_namespaces import Pids
from opscope.host.self_metrics import memory_bytes
from opscope.host.snapshot import Snapshot
from opscope.host.state_file import StateFile
from opscope.installation import checks
from opscope.processes import inventory
from opscope.record.settings_change import ALONE, SettingsChange, parse
from opscope.reports.table import screen
from opscope.reports.view import GROUPINGS, view
from opscope.segments import bounds, layout
from opscope.segments.segment_file import SegmentError
from opscope.server import live
from opscope.server.top_operators import TopOperators
from opscope.timeline import chrome, slow
from opscope_exporters import jsonl
from opscope_exporters.otlp import data as otlp_data
from opscope_exporters.otlp import delta
from opscope_exporters.prometheus import exporter as prometheus
from tests.host.hostile_directories import PRECIOUS, directories, fill, give, mutated_tail
from tests.segments.segment_writer import Process, Range, SegmentWriter

GOOD_CALLS = 7
# As segments are; on a disk, steps would wait for what other programs write there.
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
_SLOW_S = 1.0
"""The longest time for a step, of the processor and of waiting for anything else, in seconds."""
_WAITS_S = {"trace": trace._GRACE_S, "set": control_many.LOCK_WAIT_S}
"""How long a command waits for processes that do not answer, for all of them together."""
_SCHEDULED = Path("/proc/thread-self/schedstat")
_GROWTH_BYTES = 96 << 20
_WARM_ROUNDS = 40
_ACCEPTS = (
    "text/plain",
    "application/openmetrics-text",
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
)
_CHANGES = ("sampling=0.5", "windows=2ms/250ms", "max_overhead=off", "labels=a,b", "enabled=false")


class Steps:
    """The longest time of each kind of step."""

    def __init__(self) -> None:
        self.longest: defaultdict[str, float] = defaultdict(float)
        """Without the time that the thread was ready to run and other threads ran."""
        self.longest_cpu: defaultdict[str, float] = defaultdict(float)
        self.seen: Counter[str] = Counter()
        """What was reached: a fuzz that only makes what is refused at once finds nothing."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began, began_cpu = _clock_s(), time.thread_time()
        yield
        took_s = _clock_s() - began
        self.longest[name] = max(self.longest[name], took_s)
        self.longest_cpu[name] = max(self.longest_cpu[name], time.thread_time() - began_cpu)


def _clock_s() -> float:
    """A clock that stands while this thread waits for a processor."""
    queued_s = _queued_s()
    while True:
        now_s, before_s = time.monotonic(), queued_s
        queued_s = _queued_s()
        if queued_s == before_s:  # else it waited between the two
            return now_s - queued_s


def _queued_s() -> float:
    """How long this thread has waited for a processor so far; 0 where Linux does not tell."""
    try:
        return int(_SCHEDULED.read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class Round:
    def __init__(self, root: Path, chosen: random.Random, corpus: list[bytes], steps: Steps):
        self.root, self.chosen, self.corpus, self.steps = root, chosen, corpus, steps
        self.max_series = chosen.choice((2, 30, 2000))
        self.patterns = [f"{glob.escape(str(root))}/opscope-*"]
        directories(root, chosen, corpus)
        good = root / "opscope-good"
        good.mkdir(mode=0o700)
        SegmentWriter(Process()).add([Range("good", 1e-3, GOOD_CALLS)]).write(good)

    def run(self) -> None:
        self._agent()
        self._tools()
        self._control()
        self._trace()
        assert (self.root / "precious").read_bytes() == PRECIOUS

    def _agent(self) -> None:
        state = self.root / "state"
        state.mkdir(mode=0o700)
        if self.corpus and self.chosen.random() < 0.5:
            raw = self.chosen.choice(self.corpus)
            (state / "agent.state").write_bytes(mutated_tail(raw, self.chosen))
        host = self._host(state)
        first = self._collect(host)
        for path in sorted(self.root.glob("opscope-*")):
            if path.name == "opscope-good":
                continue
            if path.is_dir() and not path.is_symlink() and self.chosen.random() < 0.3:
                owner = path.stat().st_uid
                fill(path, self.chosen, self.corpus, owner)
                if owner != os.geteuid():
                    give(path, owner)
        with self.steps.step("sweep"):
            host.sweep()
        second = self._collect(host)
        host.close()
        with self.steps.step("load state"):
            again = self._host(state)
        # Invalid only if it could not be written, which never happens here.
        assert again.goes_on, again.resumed
        third = self._collect(again)
        again.close()
        saved = (state / "agent.state").read_bytes()
        if len(self.corpus) < 20:
            self.corpus.append(saved)
        for name, snapshot in (("a", first), ("b", second), ("c", third)):
            if name == "c" or self.chosen.random() < 0.3:
                self._export(snapshot, first)

    def _host(self, state: Path) -> Host:
        return Host(
            self.patterns,
            consume=True,
            max_series=self.max_series,
            state=StateFile(str(state / "agent.state")),
            series_idle_s=0.0,
            exported=lambda now_ns: now_ns,
        )

    def _collect(self, host: Host) -> Snapshot:
        with self.steps.step("collect"):
            snapshot = host.collect()
        check(snapshot)
        self.steps.seen["segments"] += len(snapshot.processes)
        self.steps.seen["bad segments"] += sum(snapshot.bad_segments.values())
        self.steps.seen["limited"] += len(snapshot.own.limited)
        return snapshot

    def _export(self, snapshot: Snapshot, first: Snapshot) -> None:
        page = prometheus.create({"octaves": self.chosen.choice((0.125, 1.0, 4.0))})
        for accept in _ACCEPTS:
            with self.steps.step("page"):
                pieces, _ = page.page(snapshot, accept)
                assert b"".join(pieces)
        with self.steps.step("otlp"):
            for temporality in (otlp_data.CUMULATIVE, otlp_data.DELTA):
                both = otlp_data.Temporality(temporality, temporality)
                base = delta.base_of(first, otlp_data.host_counts(first))
                data = otlp_data.Builder(both).build(snapshot, base)
                assert encode_metrics(data).SerializeToString()
        with self.steps.step("jsonl"):
            for line in jsonl.lines(snapshot, "host"):
                json.dumps(line, allow_nan=False)
        with self.steps.step("top"):
            for grouping in GROUPINGS.values():
                shown = view(snapshot, first, grouping)
                drawn = screen(snapshot, shown, sort="total", limit=20, by="labels", width=100)
                Console(file=io.StringIO()).print(drawn)
        with self.steps.step("live"):
            clock = itertools.count(0.0, 5.0).__next__
            page_of_now = live.Live(lambda: snapshot, lambda _: (), clock)
            for _ in range(2):
                json.loads(page_of_now.answer())
        top = TopOperators(3)
        for one in (first, snapshot):
            top.apply(one)

    def _tools(self) -> None:
        settings = load(environ={"OPSCOPE_DIR": str(self.root / "opscope-0")}, path="/nothing")
        assert isinstance(settings, Config)
        with self.steps.step("doctor"):
            for look in (checks.directory, checks.space, checks.refusals):
                look(settings)
        host = Host(self.patterns, consume=False, max_series=1)
        snapshot = host.collect()
        pids = Pids()
        with self.steps.step("ps"):
            for process in snapshot.processes:
                ps._observed(process, time.time_ns(), pids)
            if self.chosen.random() < 0.05:
                inventory.unobserved(self.patterns, snapshot.processes)

    def _control(self) -> None:
        with self.steps.step("find"):
            found = control_block.find(self.patterns)
        assert any("opscope-good" in one.path for one in found)
        change = SettingsChange(given=ALONE) if self.chosen.random() < 0.2 else None
        change = change or parse([self.chosen.choice(_CHANGES)])
        with self.steps.step("set"):
            outcomes = control_many.set_all(found, change, 0.0)
        self.steps.seen["processes"] += len(found)
        for outcome in outcomes:
            self.steps.seen["set"] += outcome.text.startswith("pending")
            assert control_block.UNFORESEEN not in outcome.text, outcome
            if "opscope-good" in outcome.found.path:
                assert outcome.text.startswith("pending"), outcome
        with self.steps.step("set --service"):
            set_command._set_later(self.patterns, ["x", "*"], change)
        nowhere = io.StringIO()
        with self.steps.step("set --show"), redirect_stdout(nowhere), redirect_stderr(nowhere):
            set_command._show(self.patterns, (), ("*",), as_json=True)

    def _trace(self) -> None:
        found = control_block.find(self.patterns)
        for one in found:
            _answer(one)
        clock = iter(range(10**6))

        def sleep(_: float) -> None:
            if next(clock) > 3:
                raise KeyboardInterrupt

        with self.steps.step("trace"):
            taken = trace.take(found, 0.001, 1 << 20, sleep=sleep)
        for one_taken in taken:
            assert control_block.UNFORESEEN not in one_taken.text, one_taken
        traces = [one.trace for one in taken if one.trace is not None]
        self.steps.seen["traces"] += len(traces)
        self.steps.seen["refused traces"] += len(taken) - len(traces)
        if traces:
            with self.steps.step("draw"):
                file = io.StringIO()
                sources = [chrome.Source(one, "p") for one in traces]
                chrome.write(file, sources, {}, lambda *_: None)
                json.loads(file.getvalue())
            with self.steps.step("slow"):
                slow.find(traces, 0, 100)


def _answer(found: control_block.FoundProcess) -> None:
    """Like a process that has started the trace it will be asked for."""
    try:
        with control_block.opened(found) as segment:
            block: Any = segment._block()
            answer: Any = segment._struct(layout.ANSWER, layout.ANSWER_OFFSET)
            answer["trace_serial"] = control_block.following(block["trace_serial"])
            answer["trace_status"] = 0
            os.pwrite(segment._fd, answer.tobytes(), layout.ANSWER_OFFSET)
    except control_block.EXPECTED:
        return


def check(snapshot: Snapshot) -> None:
    """Exporters accept all numbers, and the valid process's are correct."""
    reasons = {reason for (reason,) in snapshot.bad_segments}
    assert reasons <= set(SegmentError.REASONS) - {"failed"}, reasons
    assert np.isfinite(snapshot.variances).all()
    for counters in (snapshot.counters, snapshot.buckets):
        assert int(counters.max(initial=0)) <= bounds.SUM_LIMIT
    calls = [n for key, n in zip(snapshot.keys, snapshot.calls, strict=True) if key.op == "good"]
    # In a series of its own since the start, under `other`, or one that began at 0.
    assert sum(calls) in (0, GOOD_CALLS)


def run(seconds: float, rounds: int, seed: int, *, is_strict: bool = False) -> tuple[int, Steps]:
    """Rounds until the time or their number is over; how many there were, and how long steps took.

    `is_strict`: no step may take longer than _SLOW_S, nor memory grow.
    """
    corpus: list[bytes] = []
    steps = Steps()
    until = time.monotonic() + seconds
    done, begun_bytes = 0, 0
    while done < rounds and time.monotonic() < until:
        root = Path(tempfile.mkdtemp(prefix="hostile-", dir=_MEMORY))
        root.chmod(0o1777)
        try:
            Round(root, random.Random(f"{seed}-{done}"), corpus, steps).run()
        except BaseException:
            print(f"failed in round {done} of seed {seed}: {root}", file=sys.stderr)
            raise
        shutil.rmtree(root)
        done += 1
        if is_strict:
            for name, took_s in steps.longest.items():
                limit_s = _SLOW_S + _WAITS_S.get(name, 0.0)
                assert took_s < limit_s, (name, took_s, steps.longest_cpu[name])
            if done == _WARM_ROUNDS:
                begun_bytes = memory_bytes()
            assert not begun_bytes or memory_bytes() < begun_bytes + _GROWTH_BYTES, done
    return done, steps


def main() -> None:
    seconds = float(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(1 << 32)
    print(f"hostile directories, seed {seed}", flush=True)
    done, steps = run(seconds, 1 << 60, seed, is_strict=True)
    longest = ", ".join(
        f"{name} {took:.2f} s ({steps.longest_cpu[name]:.2f} s of the processor)"
        for name, took in sorted(steps.longest.items())
    )
    print(f"{done} rounds, no failure, {memory_bytes() >> 20} MiB; longest steps: {longest}")
    print(f"reached: {dict(steps.seen)}")


if __name__ == "__main__":
    main()
