"""Functions that run as tasks: `opscope.fork` and `opscope.wait` in scripts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope import Future, fork, wait
from opscope import tensor as ot
from opscope.errors import ScriptError
from opscope.tensor import jit, nn


def scaled(x: ot.Tensor, factor: float) -> ot.Tensor:
    return x * factor


def two(x: ot.Tensor) -> ot.Tensor:
    first = fork(scaled, x, 2.0)
    second = fork(scaled, x, 3.0)
    return wait(first) - second.wait()


def many(x: ot.Tensor, count: int) -> ot.Tensor:
    futures: list[Future[ot.Tensor]] = []
    for place in range(count):
        futures.append(fork(scaled, x, float(place)))
    total = ot.zeros_like(x)
    for future in futures:
        total = total + wait(future)
    return total


def parts(x: ot.Tensor, names: list[str]) -> tuple[ot.Tensor, list[str], int]:
    names.append("of the task")
    return x + 1.0, names, len(names)


def with_lists(x: ot.Tensor) -> tuple[ot.Tensor, list[str], list[str], int]:
    names = ["first"]
    future = fork(parts, x, names)
    y, found, count = wait(future)
    again, _, _ = wait(future)
    found.append("after")
    return y + again, names, found, count


def nested(x: ot.Tensor) -> ot.Tensor:
    inner = fork(two, x)
    return wait(inner) + wait(fork(two, x + 1.0))


def twice_waited(x: ot.Tensor) -> ot.Tensor:
    future = fork(scaled, x, 4.0)
    return wait(future) + wait(future)


X = ot.tensor([1.0, -2.0])


@pytest.mark.parametrize("function", [two, nested, twice_waited], ids=lambda each: each.__name__)
def test_tasks_give_what_calls_give(function: Any) -> None:
    assert jit.script(function)(X).tolist() == function(X).tolist()


@pytest.mark.parametrize("count", [0, 1, 100])
def test_a_list_of_futures(count: int) -> None:
    wanted = sum(range(count))
    assert jit.script(many)(X, count).tolist() == [float(wanted), -2.0 * wanted]


def test_a_task_has_lists_of_its_own() -> None:
    y, names, found, count = jit.script(with_lists)(X)
    assert y.tolist() == [4.0, -2.0]
    assert names == ["first"]
    assert found == ["first", "of the task", "after"]
    assert count == 2


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 3), nn.Linear(2, 3)

    def forward(self, x: ot.Tensor) -> ot.Tensor:
        left = fork(self.left, x)
        right: ot.Tensor = self.right(x)
        product: ot.Tensor = wait(left) * right
        return product


def test_a_module_is_a_task_and_is_saved(tmp_path: Path) -> None:
    net = Branches().eval()
    x = ot.randn([4, 2])
    model = jit.script(net)
    with ot.no_grad():
        wanted = net(x).numpy().tobytes()
        jit.save(model, tmp_path / "net.pt")
        for each in (model, jit.freeze(model), jit.load(tmp_path / "net.pt")):
            assert each(x).numpy().tobytes() == wanted
    assert "opscope.fork(" in model.code
    assert "opscope.wait(" in model.code


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)

    def forward(self, x: ot.Tensor) -> ot.Tensor:
        y: ot.Tensor = self.norm(self.conv(x))
        return y


class NormedTask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.normed = Normed()

    def forward(self, x: ot.Tensor) -> ot.Tensor:
        y: ot.Tensor = wait(fork(self.normed, x))
        return y


def zeroed(weight: ot.Tensor) -> ot.Tensor:
    return weight.zero_()


class WritingTask(NormedTask):
    def forward(self, x: ot.Tensor) -> ot.Tensor:
        wait(fork(zeroed, self.normed.conv.weight))
        y: ot.Tensor = self.normed(x)
        return y


class ReturningTask(NormedTask):
    def own_weight(self) -> ot.Tensor:
        return self.normed.conv.weight

    def forward(self, x: ot.Tensor) -> ot.Tensor:
        wait(fork(self.own_weight)).zero_()
        y: ot.Tensor = self.normed(x)
        return y


@pytest.mark.parametrize("kind", [NormedTask, WritingTask, ReturningTask])
def test_frozen_tasks_fold_what_nothing_writes(kind: type[NormedTask]) -> None:
    net = kind().eval()
    x = ot.randn([1, 2, 5, 5])
    frozen = jit.freeze(jit.script(net))
    is_folded = all("batch_norm" not in text for text in frozen.parts.functions.values())
    assert is_folded == (kind is NormedTask)
    with ot.no_grad():
        assert ot.allclose(frozen(x), net(x), atol=1e-6)


def test_gradients_flow_through_tasks() -> None:
    x = ot.tensor([1.0, 2.0]).requires_grad_()
    jit.script(two)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1.0, -1.0]


# ---- errors --------------------------------------------------------------------------------------


def raising(x: ot.Tensor) -> ot.Tensor:
    if float(x.sum()) < 0.0:
        raise ValueError("below zero")
    return x


def waits(x: ot.Tensor) -> ot.Tensor:
    future = fork(raising, x)
    return wait(future) + 1.0


def forgets(x: ot.Tensor) -> ot.Tensor:
    fork(raising, x)
    return x + 1.0


@pytest.mark.parametrize("function", [waits, forgets], ids=lambda each: each.__name__)
def test_an_error_of_a_task_is_the_runs(function: Any) -> None:
    model = jit.script(function)
    assert model(ot.ones([1])).tolist() in ([1.0], [2.0])
    with pytest.raises(ValueError, match=r"below zero .*test_tasks\.py"):
        model(-ot.ones([1]))


def endless(x: ot.Tensor) -> ot.Tensor:
    while float(x.sum()) > 0.0:
        x = x + 1.0
    return x


def fails_beside(x: ot.Tensor) -> ot.Tensor:
    future = fork(endless, x)
    y = raising(-x)
    return wait(future) + y


def test_a_run_that_fails_stops_its_tasks() -> None:
    with pytest.raises(ValueError, match="below zero"):
        jit.script(fails_beside)(ot.ones([1]))


def itself(x: ot.Tensor) -> ot.Tensor:
    return wait(fork(itself, x))


def leaves(x: ot.Tensor) -> Any:
    return fork(scaled, x, 2.0)


def takes(x: ot.Tensor) -> ot.Tensor:
    return wait(fork(given, fork(scaled, x, 2.0)))


def given(future: Future[ot.Tensor]) -> ot.Tensor:
    return wait(future)


def no_function(x: ot.Tensor) -> ot.Tensor:
    return wait(fork(x, 2.0))  # type: ignore[arg-type]


def no_future(x: ot.Tensor) -> ot.Tensor:
    return wait(x)  # type: ignore[arg-type]


REFUSED = {
    itself: "recursion cannot be scripted",
    leaves: "has a future",
    takes: "has a future",
    no_function: "fork takes a function or a module, not Tensor",
    no_future: "wait takes a future, not Tensor",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda each: each.__name__)
def test_what_is_no_task_is_refused(function: Any) -> None:
    with pytest.raises((ScriptError, ValueError), match=REFUSED[function]):
        jit.script(function)(X)


# ---- labels and threads --------------------------------------------------------------------------


@pytest.fixture
def seen() -> Iterator[list[tuple[str, dict[str, str], int]]]:
    found: list[tuple[str, dict[str, str], int]] = []

    def start(fn: Any) -> None:
        found.append((fn.name, dict(opscope.get_debug_info()), threading.get_ident()))

    handle = opscope.add_global_callback(start, None)
    yield found
    opscope.remove_callback(handle)


def test_operators_of_tasks_have_the_labels_of_the_run(
    seen: list[tuple[str, dict[str, str], int]], tmp_path: Path
) -> None:
    jit.save(jit.script(many), tmp_path / "net.pt", model_id="tasks")
    model = jit.load(tmp_path / "net.pt")
    with opscope.debug_info(request="7"):
        model(X, 20)
    labels = [labels for name, labels, _ in seen if name == "core::mul"]
    assert labels == [{"model_id": "tasks", "request": "7"}] * 20


def test_threads_run_one_model_with_tasks_at_once() -> None:
    model = jit.script(nested)
    wanted = nested(X).tolist()
    found: list[Any] = []

    def run() -> None:
        for _ in range(50):
            found.append(model(X).tolist())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 200
