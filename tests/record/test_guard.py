"""Guards: changes of a thread are undone innermost first, whatever the order in which blocks
end."""

import threading
from collections.abc import Callable
from itertools import permutations

import pytest

from opscope.record.guard import Guard, swap_stacks


class Layer(Guard):
    """Pushes its name on a list, and pops the last one."""

    _kind = "layer"

    def __init__(self, name: str, layers: list[str]) -> None:
        super().__init__()
        self._name = name
        self._layers = layers

    def _apply(self) -> Callable[[], object]:
        self._layers.append(self._name)
        return lambda: self._layers.remove(self._name)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_whatever_the_order_of_the_ends_all_is_undone(order: tuple[int, ...]) -> None:
    layers: list[str] = []
    guards = [Layer(name, layers) for name in "abcd"]
    for guard in guards:
        guard.__enter__()
    for number in order:
        guards[number].__exit__()
        # An ended guard is removed once no later guard is in force.
        in_force = [number for number in range(4) if guards[number]._entered]
        assert len(layers) == max(in_force, default=-1) + 1
    assert layers == []


def test_a_change_left_on_another_thread_is_undone_when_its_own_next_enters() -> None:
    layers: list[str] = []
    one = Layer("one", layers)
    one.__enter__()
    thread = threading.Thread(target=one.__exit__)
    thread.start()
    thread.join()
    assert layers == ["one"]
    with Layer("two", layers):
        assert layers == ["two"]
    assert layers == []


def test_one_guard_may_be_entered_by_several_threads_at_once() -> None:
    layers: list[str] = []
    shared = Layer("shared", layers)
    entered = threading.Barrier(2)

    def work() -> None:
        with shared:
            entered.wait(30)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert layers == []


def test_a_swapped_stack_keeps_outside_changes_out_of_reach() -> None:
    layers: list[str] = []
    outside = Layer("outside", layers)
    outside.__enter__()
    before = swap_stacks({})
    outside.__exit__()
    with Layer("inside", layers):
        pass
    assert layers == ["outside"]
    swap_stacks(before)
    with Layer("again", layers):
        assert layers == ["again"]


def test_a_change_that_fails_leaves_nothing_to_undo() -> None:
    class Failing(Guard):
        _kind = "layer"

        def _apply(self) -> Callable[[], object]:
            raise KeyError

    layers: list[str] = []
    with Layer("outer", layers):
        with pytest.raises(KeyError):
            Failing().__enter__()
        assert layers == ["outer"]
    assert layers == []
