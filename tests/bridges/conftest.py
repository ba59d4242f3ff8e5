"""NumPy attached, with the ranges that callbacks see; PyTorch attached."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opscope
from opscope.bridges import numpy as bridge
from tests.waiting import UNTIL


class Ranges:
    """The names of the ranges of all threads, in the order they opened."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def start(self, fn: opscope.RecordFunction) -> None:
        self.names.append(fn.name)

    def count(self, name: str) -> int:
        return self.names.count(name)

    def take(self) -> list[str]:
        taken = self.names[:]
        self.names.clear()
        return taken


@pytest.fixture
def attached() -> Iterator[None]:
    bridge.attach()
    yield
    bridge.detach()


@pytest.fixture
def ranges(attached: None) -> Iterator[Ranges]:
    seen = Ranges()
    handle = opscope.add_global_callback(seen.start)
    yield seen
    opscope.remove_callback(handle)


@pytest.fixture
def torch_attached() -> Iterator[None]:
    """PyTorch attached, on one thread; a recorder and callbacks that a test leaves are ended."""
    import torch  # the tests of NumPy run without it too

    from opscope.bridges import torch as torch_bridge
    from opscope.record import recorder

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch_bridge.attach()
    yield
    if recorder.is_running():
        recorder.stop(discard=True)
    opscope.clear_callbacks()
    torch_bridge.detach()
    torch.set_num_threads(threads)


WAIT_FOR_WINDOWS = f"""{UNTIL}
from opscope.record import recorder

def wait_for_windows(count):
    until(lambda: recorder.status().window_count >= count, f"{{count}} windows", pause_s=0.01)

"""
"""For an observed program: `wait_for_windows(count)` returns once the recorder has opened so many
windows."""


def windows(length_ms: float, period_ms: float) -> dict[str, str]:
    """Environment variables of a program that is sampled by such windows."""
    return {
        "OPSCOPE_SAMPLING": "windows",
        "OPSCOPE_WINDOW_MS": str(length_ms),
        "OPSCOPE_PERIOD_MS": str(period_ms),
    }


WORD = ctypes.sizeof(ctypes.c_void_p)
HEAD = object.__basicsize__
"""The bytes of PyObject: more in free-threaded Python."""


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


def vectorcall(ufunc: np.ufunc) -> ctypes.c_size_t:
    """The function that a call of it runs."""
    # PyTypeObject.tp_vectorcall_offset is the sixth word behind the head.
    offset = _word(id(type(ufunc)) + HEAD + 5 * WORD)
    return ctypes.c_size_t.from_address(id(ufunc) + offset)


def pointers() -> dict[str, int]:
    """Every pointer the bridge may replace, read from memory."""
    found: dict[str, int] = {}
    subject: Any
    for _, subject, name in bridge._targets(np):
        kind = type(subject)
        if isinstance(subject, np.ufunc):
            found[name] = vectorcall(subject).value
        elif isinstance(subject, np.ndarray):
            # tp_as_mapping is the 13th; mp_subscript and mp_ass_subscript follow mp_length.
            mapping = _word(id(kind) + HEAD + 12 * WORD)
            found["mp_subscript"] = _word(mapping + WORD)
            found["mp_ass_subscript"] = _word(mapping + 2 * WORD)
        else:
            # PyCFunctionObject.m_ml, then PyMethodDef.ml_meth.
            found[name] = _word(_word(id(subject) + HEAD) + WORD)
    return found
