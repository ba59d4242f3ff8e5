"""Functions of Python on lists, in the Python that can be scripted: sum, min, max, any, all."""

from __future__ import annotations

from typing import Any

from opscope._tensor import Tensor


def sum_ints(items: list[int], start: int) -> int:
    """sum of ints."""
    for item in items:
        start += item
    return start


def sum_floats(items: list[Any], start: float) -> float:
    """sum of floats, or of ints and a float."""
    for item in items:
        start += item
    return start


def sum_onto(items: list[Tensor], start: Tensor) -> Tensor:
    """sum of tensors, from a tensor on."""
    for item in items:
        start = start + item
    return start


def sum_tensors(items: list[Tensor], start: Any) -> Tensor:
    """sum of tensors: a new one, unless there is none."""
    if len(items) == 0:
        raise ValueError("sum() of no tensors")
    total: Tensor = start + items[0]
    for place in range(1, len(items)):
        total = total + items[place]
    return total


def prod(items: list[Any]) -> Any:
    """math.prod of at least one number."""
    result = 1
    for item in items:
        result = result * item
    return result


def greatest(items: list[Any]) -> Any:
    """max of a list."""
    if len(items) == 0:
        raise ValueError("max() arg is an empty sequence")
    best = items[0]
    for item in items:
        if item > best:
            best = item
    return best


def least(items: list[Any]) -> Any:
    """min of a list."""
    if len(items) == 0:
        raise ValueError("min() arg is an empty sequence")
    best = items[0]
    for item in items:
        if item < best:
            best = item
    return best


def any_true(items: list[Any]) -> bool:
    """any of a list."""
    for item in items:  # noqa: SIM110 - any() is what this scripts
        if item:
            return True
    return False


def all_true(items: list[Any]) -> bool:
    """all of a list."""
    for item in items:  # noqa: SIM110 - all() is what this scripts
        if not item:
            return False
    return True


def place_of(items: list[Any], item: Any) -> int:
    """list.index."""
    for place in range(len(items)):
        if items[place] == item:
            return place
    raise ValueError("the list does not have that item")


def times(items: list[Any], item: Any) -> int:
    """list.count."""
    count = 0
    for each in items:
        if each == item:
            count += 1
    return count
