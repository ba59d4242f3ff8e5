"""Push exporters get snapshots in their own threads; a failing or hanging one harms no other."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from opscope.host.snapshot import Snapshot
from opscope.server.exporter import ExportRefused
from opscope.server.push import Push

TIMEOUT_S = 300


class Exporter:
    """Runs the next action at each export; `wait_for(n)` waits for n exports."""

    def __init__(self, *acts: Callable[[], None]) -> None:
        self.interval_s = 0.001
        self.given: list[Any] = []
        self.closed = threading.Event()
        self._acts = list(acts)
        self._seen = threading.Semaphore(0)

    def export(self, snapshot: Snapshot) -> None:
        self.given.append(snapshot)
        self._seen.release()
        if self._acts:
            self._acts.pop(0)()

    def close(self) -> None:
        self.closed.set()

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self._seen.acquire(timeout=TIMEOUT_S)


class Snapshots:
    """Numbers in place of snapshots."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> Any:
        self.made += 1
        return self.made


def fail(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def nothing() -> None:
    pass


def wait(event: threading.Event) -> None:
    assert event.wait(TIMEOUT_S)


def test_failures_are_counted_and_changes_reported() -> None:
    said: list[str] = []
    exporter = Exporter(
        nothing,
        fail(ValueError("no luck")),
        fail(ValueError("no luck")),
        nothing,
        fail(ExportRefused("2 points rejected")),
    )
    push = Push({"sample": exporter}, Snapshots(), said.append)
    exporter.wait_for(6)
    push.close()
    assert said == [
        "exporter sample failed, and will retry: no luck",
        "exporter sample works again",
        "exporter sample was refused: 2 points rejected",
        "exporter sample works again",
    ]
    results = push.results
    assert (results["sample", "failed"], results["sample", "refused"]) == (2, 1)
    assert results["sample", "sent"] == len(exporter.given) - 3
    assert exporter.closed.is_set()


def test_another_reason_of_the_failure_is_reported_too() -> None:
    """What was wrong first may be mended, and the export fails for another reason."""
    said: list[str] = []
    exporter = Exporter(
        fail(ValueError("connection refused; retried for 1.5 s")),
        fail(ValueError("connection refused; retried for 2.25 s")),
        fail(ValueError("status 401")),
        fail(ValueError("status 403")),
        fail(ExportRefused("status 403: 12 points")),
        fail(ExportRefused("status 403: 7 points")),
        fail(ValueError("<Connection at 0x7f1a> failed")),
        fail(ValueError("<Connection at 0x7fcb> failed")),
        fail(ValueError("connection refused; retried for 1 s")),
    )
    push = Push({"sample": exporter}, Snapshots(), said.append)
    exporter.wait_for(10)
    push.close()
    assert said == [
        "exporter sample failed, and will retry: connection refused; retried for 1.5 s",
        "exporter sample failed, and will retry: status 401",
        "exporter sample failed, and will retry: status 403",
        "exporter sample was refused: status 403: 12 points",
        "exporter sample failed, and will retry: <Connection at 0x7f1a> failed",
        "exporter sample failed, and will retry: connection refused; retried for 1 s",
        "exporter sample works again",
    ]


def test_a_failure_with_ever_new_reasons_is_reported_a_few_times() -> None:
    said: list[str] = []
    count = 100
    reasons = (chr(ord("a") + at // 26) + chr(ord("a") + at % 26) for at in range(count))
    exporter = Exporter(*(fail(ValueError(one)) for one in reasons))
    push = Push({"sample": exporter}, Snapshots(), said.append)
    exporter.wait_for(count + 1)
    push.close()
    assert said[0].endswith(": aa") and said[-1] == "exporter sample works again"
    assert 2 < len(said) < count / 4
    assert said[-2].endswith("; further reasons are not reported until it works again")


def test_one_that_hangs_gets_the_newest_next_and_holds_up_no_other() -> None:
    go_on = threading.Event()
    snapshots = Snapshots()
    hanging, other = Exporter(lambda: wait(go_on)), Exporter()
    push = Push({"hanging": hanging, "other": other}, snapshots, pytest.fail)
    hanging.wait_for(1)
    other.wait_for(20)
    missed = snapshots.made
    go_on.set()
    hanging.wait_for(1)
    push.close()
    assert hanging.given[1] > missed - 1
    assert len(hanging.given) < len(other.given)


def test_the_end_sends_the_last_increase() -> None:
    exporter = Exporter()
    exporter.interval_s = 3600.0
    snapshots = Snapshots()
    push = Push({"sample": exporter}, snapshots, pytest.fail)
    push.close()
    assert exporter.given == [1]
    assert exporter.closed.is_set()


def test_a_failure_at_the_end_promises_nothing() -> None:
    exporter = Exporter(fail(ValueError("no luck")))
    exporter.interval_s = 3600.0
    said: list[str] = []
    Push({"sample": exporter}, Snapshots(), said.append).close()
    assert said == ["exporter sample failed: no luck"]
