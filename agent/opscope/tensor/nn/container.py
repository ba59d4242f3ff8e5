"""Modules made of modules: Sequential, ModuleList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

from opscope.tensor.nn.module import Module


class Sequential(Module):
    """Modules called in sequence, each with the result of the previous one.

    A step may also be a function of one tensor; it then has no name among the children.
    """

    def __init__(self, *steps: Any) -> None:
        self._steps = steps
        for place, step in enumerate(steps):
            if isinstance(step, Module):
                setattr(self, str(place), step)

    def forward(self, input: Any) -> Any:
        for step in self._steps:
            input = step(input)
        return input

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def __getitem__(self, place: int) -> Any:
        return self._steps[place]


class ModuleList(Module):
    """A list of modules, named by their indices; it computes nothing itself."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Adds one module at the end."""
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds all of these at the end."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return sum(1 for _ in self.named_children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> ModuleList: ...
    def __getitem__(self, place: int | slice) -> Any:
        chosen = list(self.children())[place]
        return ModuleList(chosen) if isinstance(chosen, list) else chosen
