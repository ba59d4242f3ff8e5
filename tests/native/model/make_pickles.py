"""Writes the pickles that test_pickle.c reads: what PyTorch saves, with each one's tree as text.

Run by hand where the set of pickles is to change, with the version of PyTorch in the Makefile:

    python tests/native/model/make_pickles.py

The text of a tree comes from Python's own pickle module, whose `find_class` gives stand-ins that
remember how they are called: the C reader is compared with another implementation, not with itself.
Not the place for tensors' data: only the pickles of the archives are kept.
"""

from __future__ import annotations

import collections
import io
import pickle
import zipfile
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

FOLDER = Path(__file__).parent / "pickles"


class Known:
    """A global. An instance is a call of it."""

    name = ""

    def __new__(cls, *args: Any) -> Known:
        made = object.__new__(cls)
        made.__dict__.update(args=args, state=None, pairs=[])
        return made

    def __init__(self, *args: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.__dict__["state"] = state

    def __setitem__(self, key: Any, value: Any) -> None:
        self.__dict__["pairs"].append((key, value))


class Persistent:
    def __init__(self, key: Any) -> None:
        self.key = key


class Reader(pickle._Unpickler):
    """Python's reader in Python, which follows BINPUT and BUILD as the format says."""

    stack: list[Any]

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module
        return type("Global", (Known,), {"name": f"{module}.{name}"})

    def persistent_load(self, pid: Any) -> Any:
        return Persistent(pid)

    def load_reduce(self) -> None:
        """As Python's, and TorchScript's enums: a call with a plain value in place of a tuple."""
        args = self.stack.pop()
        made = self.stack[-1](*args) if isinstance(args, tuple) else self.stack[-1]()
        made.__dict__["args"] = args
        self.stack[-1] = made

    dispatch: ClassVar[dict[int, Any]] = {
        **pickle._Unpickler.dispatch,
        pickle.REDUCE[0]: load_reduce,
    }


def lines_of(item: Any, depth: int = 0) -> list[str]:
    """The tree below the item, one line for each, as test_pickle.c prints it."""

    def head(text: str, *parts: Any) -> list[str]:
        below = [line for part in parts for line in lines_of(part, depth + 1)]
        return ["  " * depth + text, *below]

    if item is None:
        return head("none")
    if isinstance(item, bool):
        return head(f"bool {int(item)}")
    if isinstance(item, int):
        return head(f"integer {item}")
    if isinstance(item, float):
        return head(f"float {item:.17g}")
    if isinstance(item, str):
        return head(f"text {item.encode().hex()}")
    if isinstance(item, bytes):
        return head(f"bytes {item.hex()}")
    if isinstance(item, list):
        return head(f"list {len(item)}", *item)
    if isinstance(item, tuple):
        return head(f"tuple {len(item)}", *item)
    if isinstance(item, dict):
        return head(f"map {len(item)}", *(part for pair in item.items() for part in pair))
    if isinstance(item, type) and issubclass(item, Known):
        return head(f"global {item.name}")
    if isinstance(item, Persistent):
        return head("persistent id", item.key)
    made = item.__dict__
    pairs = [part for pair in made["pairs"] for part in pair]
    state = [] if made["state"] is None else [made["state"]]
    parts = [type(item), made["args"], *state, *pairs]
    return head(f"object {len(made['pairs'])} {len(state)}", *parts)


class Color(Enum):
    RED = 1
    BLUE = 2


class Scripted(nn.Module):  # type: ignore[misc]
    """Attributes of every kind that TorchScript pickles."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.register_buffer("scale", torch.ones(2))
        self.sizes = torch.jit.Attribute([1, 300, 70_000, 1 << 40, -5], list[int])
        self.names = torch.jit.Attribute({"a": 1.5, "é": float("inf")}, dict[str, float])
        self.pair = torch.jit.Attribute((True, "text", None), tuple[bool, str, int | None])
        self.color = torch.jit.Attribute(Color.BLUE, Color)
        self.device = torch.jit.Attribute(torch.device("cpu"), torch.device)
        self.number = torch.jit.Attribute(2 + 3j, complex)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def saved(thing: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(thing, file, **options)
    return entry(file, "data.pkl")


def entry(file: io.BytesIO, wanted: str) -> bytes:
    with zipfile.ZipFile(file) as archive:
        name = next(name for name in archive.namelist() if name.endswith(wanted))
        return archive.read(name)


def optimizer_state() -> Any:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


def nested() -> Any:
    shared = [1, 2.5, "shared"]
    return {
        "plain": [None, True, False, 0, 255, 256, 65_536, -1, 2**31, 2**63 - 1, -(2**63)],
        "real": (0.1, -0.0, 1e-320, float("-inf")),
        "text": ["", "é", "\U0001f600", "a\0b", "x" * 300],
        "sets": [set(), {1}],
        "bytes": [b"", b"\x00\xff", bytearray(b"ab")],
        "long": list(range(1001)),
        "many": {f"layer.{i}": i for i in range(1001)},
        7: ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "shared": [shared, shared, {"again": shared}],
        "torch": [torch.float32, torch.device("cpu"), torch.Size([2, 3]), 1 + 2j],
        "tensors": [torch.ones(2, 3).t(), nn.Parameter(torch.zeros(1)), torch.ones(0)],
        "counter": collections.Counter("aab"),
    }


def pickles() -> dict[str, bytes]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 2))
    script, trace = io.BytesIO(), io.BytesIO()
    constant = torch.tensor([1.0, 2.0])
    torch.jit.save(torch.jit.script(Scripted()), script)
    torch.jit.save(torch.jit.trace(lambda x: x * constant, torch.ones(2)), trace)
    return {
        "state_dict": saved(model.state_dict()),
        "state_dict_protocol_3": saved({"raw": b"\x01", **model.state_dict()}, pickle_protocol=3),
        "optimizer": saved(optimizer_state()),
        "nested": saved(nested()),
        "script": entry(script, "/data.pkl"),
        "trace_constants": entry(trace, "/constants.pkl"),
    }


def main() -> None:
    for name, data in pickles().items():
        (FOLDER / f"{name}.pkl").write_bytes(data)
        tree = Reader(io.BytesIO(data)).load()
        (FOLDER / f"{name}.tree").write_text("\n".join(lines_of(tree)) + "\n")
        print(name, len(data))


if __name__ == "__main__":
    main()
