"""DataLoader with worker processes: order, seeds, failures, and nothing left behind."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from opscope import tensor as ot
from opscope.tensor import data
from tests.tensor.data import datasets
from tests.tensor.data.datasets import Facts, Large, Note, Rows, Stream, Whole
from tests.tensor.ranges import ranges

METHODS = ["fork", "spawn", "forkserver"]


def descriptors() -> set[tuple[str, str]]:
    """The open files of this process: descriptors and their targets."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the directory itself
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def numbers(loader: Any) -> list[Any]:
    return [batch[2].tolist() for batch in loader]


@pytest.mark.parametrize("method", METHODS)
def test_batches_are_those_of_one_process_in_the_same_order(method: str) -> None:
    here = list(data.DataLoader(Rows(), batch_size=5))
    loader = data.DataLoader(Rows(), batch_size=5, num_workers=2, multiprocessing_context=method)
    batches = list(loader)
    assert len(batches) == len(loader) == 3
    for (own, array, index, text), expected in zip(batches, here, strict=True):
        assert own.tolist() == expected[0].tolist()
        assert array.tolist() == expected[1].tolist()
        assert index.tolist() == expected[2].tolist()
        assert list(text) == list(expected[3])
    batches[0][0].add_(1)  # the consumer's own memory
    assert batches[0][0][0, 0, 0].item() == 1
    assert multiprocessing.active_children() == []


def test_a_shuffle_is_the_same_with_and_without_workers() -> None:
    orders = [
        numbers(
            data.DataLoader(
                Rows(), batch_size=3, shuffle=True, num_workers=count, generator=random.Random(7)
            )
        )
        for count in (0, 1, 3)
    ]
    assert orders[1] == orders[2]
    assert len(orders[0]) == len(orders[1]) == 4
    for order in orders:
        assert sorted(index for batch in order for index in batch) == list(range(12))


def test_streams_of_workers_take_turns_until_each_is_over() -> None:
    loader = data.DataLoader(Stream(), batch_size=2, num_workers=2)
    expected = [[0, 2], [1, 3], [4], [5, 7], [9, 11], [13, 15], [17, 19], [21]]
    for _ in range(3):
        assert [batch.tolist() for batch in loader] == expected


def test_workers_know_who_they_are_and_have_seeds_of_their_own() -> None:
    def facts(seed: int) -> list[dict[str, Any]]:
        loader = data.DataLoader(
            Facts(), batch_size=None, num_workers=2, generator=random.Random(seed)
        )
        return list(loader)

    found = facts(1)
    assert [fact["id"] for fact in found] == [0, 1, 0, 1]
    assert {fact["count"] for fact in found} == {2}
    assert all(fact["own"] for fact in found)
    assert found[1]["seed"] == found[0]["seed"] + 1
    assert os.getpid() not in {fact["pid"] for fact in found}
    for key in ("random", "numpy", "core"):
        assert len({fact[key] for fact in found}) == 4, key
        assert [fact[key] for fact in facts(1)] == [fact[key] for fact in found], key
        assert [fact[key] for fact in facts(2)] != [fact[key] for fact in found], key


def test_the_seed_of_the_core_is_the_seed_of_the_workers() -> None:
    loader = data.DataLoader(Facts(), batch_size=None, num_workers=2)
    drawn = []
    for seed in (1, 1, 2):
        ot.manual_seed(seed)
        drawn.append([fact["core"] for fact in loader])
    assert drawn[0] == drawn[1] != drawn[2]


def test_worker_init_fn_runs_in_each_worker_first(tmp_path: Path) -> None:
    list(data.DataLoader(Rows(), num_workers=3, worker_init_fn=Note(tmp_path)))
    noted = {path.name: int(path.read_text()) for path in tmp_path.iterdir()}
    assert noted.keys() == {"0", "1", "2"}
    assert len({*noted.values(), os.getpid()}) == 4


def test_persistent_workers_serve_one_iteration_after_the_other(tmp_path: Path) -> None:
    loader = data.DataLoader(Facts(), batch_size=None, num_workers=2, persistent_workers=True)
    first = {fact["pid"] for fact in loader}
    for _ in loader:
        break  # batches fetched ahead are dropped
    again = list(loader)
    assert {fact["pid"] for fact in again} == first
    assert [fact["id"] for fact in again] == [0, 1, 0, 1]
    older, newer = iter(loader), iter(loader)
    next(newer)
    with pytest.raises(RuntimeError, match="newer iteration"):
        next(older)
    del older, newer, loader
    gc.collect()
    assert multiprocessing.active_children() == []


def test_batches_of_an_abandoned_iteration_are_not_in_the_next() -> None:
    order = [0, 1, 2, 3, 4, 5]
    loader = data.DataLoader(
        Rows(), sampler=order, num_workers=2, persistent_workers=True, prefetch_factor=3
    )
    assert next(iter(loader))[2].tolist() == [0]
    order[:] = [6, 7, 8, 9]
    assert numbers(loader) == [[6], [7], [8], [9]]


def test_consumer_and_worker_do_not_wait_for_each_other_to_listen() -> None:
    # Neither the request nor the answer fits into a pipe.
    asked = [list(range(200_000))] * 6
    loader = data.DataLoader(
        Whole(), batch_sampler=asked, num_workers=1, collate_fn=datasets.as_is, prefetch_factor=3
    )
    assert [len(batch[0]) for batch in loader] == [5_000_000] * 6


def test_large_batches_that_are_no_tensors_come_through() -> None:
    loader = data.DataLoader(
        Large(), batch_size=2, num_workers=2, prefetch_factor=4, collate_fn=datasets.as_is
    )
    assert [len(batch) for batch in loader] == [2, 2, 2, 2]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        ("raise", ValueError, "bad row 5"),
        ("key", KeyError, "row"),
        ("odd", RuntimeError, "row 5 is odd"),
    ],
)
def test_an_error_in_a_worker_is_raised_here_with_its_traceback(
    method: str, act: str, error: type[Exception], text: str
) -> None:
    loader = data.DataLoader(
        Rows(act=act, at=5), batch_size=2, num_workers=2, multiprocessing_context=method
    )
    batches = iter(loader)
    assert [next(batches)[2].tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(error) as caught:
        next(batches)
    said = str(caught.value)
    assert "in DataLoader worker 0:\nTraceback" in said
    assert "in misbehave" in said
    assert text in said
    assert [batch[2].tolist() for batch in batches] == [[6, 7], [8, 9], [10, 11]]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"worker_init_fn": datasets.fail_first}, RuntimeError, "no start for the first"),
        ({"collate_fn": datasets.unpicklable}, Exception, "pickle"),
    ],
)
def test_failures_before_and_after_fetching_are_raised_too(
    options: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        next(iter(data.DataLoader(Rows(), num_workers=2, **options)))


@pytest.mark.parametrize(
    ("act", "text"),
    [("kill", r"worker 1 \(pid \d+\) was killed by SIGKILL"), ("exit", "exited with status 3")],
)
def test_a_dead_worker_is_an_error_and_not_a_wait(act: str, text: str) -> None:
    before = descriptors()
    batches = iter(data.DataLoader(Rows(act=act, at=3), batch_size=2, num_workers=2))
    assert next(batches)[2].tolist() == [0, 1]
    with pytest.raises(RuntimeError, match=text):
        next(batches)
    assert list(batches) == []
    del batches
    assert descriptors() <= before  # garbage of other tests may be freed meanwhile
    assert multiprocessing.active_children() == []


def test_a_late_worker_is_an_error() -> None:
    loader = data.DataLoader(Rows(act="hang", at=0), num_workers=1, timeout=0.05)
    with pytest.raises(RuntimeError, match=r"worker 0 .* no batch for 0.05 s"):
        next(iter(loader))
    gc.collect()
    assert multiprocessing.active_children() == []


def test_a_consumer_that_breaks_out_leaves_nothing_behind() -> None:
    before = descriptors()
    for batch in data.DataLoader(Rows(100), batch_size=4, num_workers=2, prefetch_factor=4):
        assert batch[2].tolist() == [0, 1, 2, 3]
        break
    gc.collect()
    assert multiprocessing.active_children() == []
    assert descriptors() <= before


def test_batches_that_are_kept_hold_no_descriptors() -> None:
    before = descriptors()
    batches = list(data.DataLoader(Rows(60), num_workers=2))
    assert descriptors() <= before
    assert [batch[0][0, 0, 0].item() for batch in batches] == list(range(60))


def test_the_wait_for_a_worker_is_one_range_of_the_consumer() -> None:
    loader = data.DataLoader(Rows(), batch_size=4, num_workers=2)
    with ranges() as seen:
        list(loader)
    assert [name for name, _ in seen] == ["data::next"] * 4


PROGRAM = """
import os, sys, time
from opscope.tensor import data
from opscope.tensor.data import worker
worker.CHECK_S = float(sys.argv[1])
class Rows(data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index):
        if index == 6: time.sleep(1000)
        return index
if __name__ == "__main__":
    batches = iter(data.DataLoader(Rows(), num_workers=2))
    print(next(batches).item(), next(batches).item(), flush=True)
    print(*(process.pid for process in batches._workers._processes), flush=True)
"""


def start(end: str, check_s: float = 1000) -> tuple[subprocess.Popen[str], list[int]]:
    """A consumer whose first worker hangs, and its workers; the consumer then runs `end`."""
    consumer = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + end, str(check_s)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "0 1\n"
    return consumer, [int(pid) for pid in consumer.stdout.readline().split()]


def wait_for_end(pids: list[int]) -> None:
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        assert select.select([fd], [], [], 300)[0], "a worker lives on"
        os.close(fd)


def test_the_end_of_the_program_ends_the_workers() -> None:
    consumer, workers = start("    sys.exit(0)")
    _, errors = consumer.communicate(timeout=300)
    assert (consumer.returncode, errors) == (0, "")
    wait_for_end(workers)


def test_a_fork_of_the_consumer_leaves_the_workers_alone() -> None:
    consumer, _ = start(
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        del batches\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
        "    print(next(batches).item(), next(batches).item())"
    )
    assert consumer.stdout is not None and consumer.stderr is not None
    # Not communicate(): it misses what readline() has already read from the pipe.
    with consumer:
        output = consumer.stdout.read(), consumer.stderr.read()
    assert (consumer.returncode, *output) == (0, "2 3\n", "")


@pytest.mark.usefixtures("signals_at_default")
def test_ctrl_c_ends_the_consumer_and_its_workers() -> None:
    consumer, workers = start("    [next(batches) for _ in range(900)]")
    # As a terminal does: to the whole group.
    os.killpg(consumer.pid, signal.SIGINT)
    _, errors = consumer.communicate(timeout=300)
    assert consumer.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    wait_for_end(workers)


@pytest.mark.parametrize(
    ("end", "check_s"),
    [
        ("    print('ready', flush=True); time.sleep(1000)", 1000),
        # A surviving fork holds the consumer's ends of all pipes.
        ("    if os.fork(): print('ready', flush=True)\n    time.sleep(1000)", 0.05),
    ],
)
def test_idle_workers_end_with_a_consumer_that_was_killed(end: str, check_s: float) -> None:
    # Worker 0 hangs in a sample: only the other is idle.
    consumer, workers = start(end, check_s)
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "ready\n"
    consumer.kill()
    wait_for_end(workers[1:])
    os.killpg(consumer.pid, signal.SIGKILL)
    consumer.communicate(timeout=300)
