"""The state of scripting one model: its functions, and the names of its tensors and modules."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opscope._tensor import Tensor, dtype
from opscope.tensor.composed import stands_for
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.scripting.source import Source, name_of
from opscope.tensor.jit.scripting.types import Type
from opscope.tensor.jit.scripting.values import (
    AttributeTensor,
    Constant,
    FunctionValue,
    Items,
    ModuleValue,
    Object,
    Value,
)
from opscope.tensor.nn import Module
from opscope.tensor.places import device

SCRIPTED: weakref.WeakKeyDictionary[CompiledModel, object] = weakref.WeakKeyDictionary()
"""What models were scripted from: a function that calls a scripted one has it scripted again."""


@dataclass
class Compiled:
    """A function of the model."""

    name: str
    result: Type
    text: str


@dataclass
class Context:
    """What all functions of one model share."""

    root: Module | None
    functions: dict[object, Compiled] = field(default_factory=dict)
    """By function, object and types."""
    attributes: dict[str, Tensor] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[object, str]] = field(default_factory=list)
    """The functions that are being scripted, each called by the one before, with their names."""

    def __post_init__(self) -> None:
        self._paths: dict[int, str] = {}
        self._tensors: dict[int, str] = {}
        self._names: set[str] = set()
        self._kept: list[object] = []  # so that no id is used twice
        if self.root is None:
            return
        for path, module in self.root.named_modules():
            self._paths[id(module)] = path
            for name, value in vars(module).items():
                if isinstance(value, Tensor) and id(value) not in self._tensors:
                    dotted = f"{path}.{name}" if path else name
                    self._tensors[id(value)] = dotted
                    self.attributes[dotted] = value

    def tensor_name(self, tensor: Tensor) -> str:
        """The attribute that holds the tensor; a tensor that no module has becomes a constant."""
        if id(tensor) not in self._tensors:
            name = f"constants.{sum(each.startswith('constants.') for each in self.attributes)}"
            self._tensors[id(tensor)] = name
            self.attributes[name] = tensor
        return self._tensors[id(tensor)]

    def module_path(self, module: Any) -> str:
        """The path of a module from the root; one outside the model is named by its class."""
        if id(module) not in self._paths:
            self._paths[id(module)] = self.unused_name(type(module).__name__.lower())
            self._kept.append(module)
        return self._paths[id(module)]

    def unused_name(self, wanted: str) -> str:
        """That name, with a number if a function of the model has it already."""
        name, count = wanted, 1
        while name in self._names:
            count += 1
            name = f"{wanted}_{count}"
        self._names.add(name)
        return name

    def function_name(self, function: Callable[..., Any], bound_to: Value | None) -> str:
        """The name of a function in the model, as GRAPHS.md has it."""
        if isinstance(bound_to, ModuleValue):
            path = bound_to.path
            owner = type(bound_to.module)
            name = function.__name__
            own = inspect.getattr_static(owner, name, None)
            if own is not function and getattr(own, "fget", None) is not function:
                name = name_of(function)  # as called by super()
            return self.unused_name(f"{path}.{name}" if path else name)
        module = function.__module__ or "__main__"
        return self.unused_name(f"{module}.{name_of(function)}")

    def keep_code(self, source: Source) -> None:
        """Adds a function's source to what the archive shows to people."""
        text = "".join(source.lines)
        held = self.code.get(source.file_name, "")
        if text not in held:
            self.code[source.file_name] = held + text

    def value_of(self, found: object) -> Value:
        """A Python object that the code refers to."""
        found = stands_for(found)
        if found is None or isinstance(found, dtype):
            return Constant(found)
        if isinstance(found, device):
            return Constant(str(found))
        for kind in (bool, int, float, str):
            if isinstance(found, kind):
                return Constant(kind(found))  # without its subclass
        if isinstance(found, Tensor):
            return AttributeTensor(found, self.tensor_name(found))
        if isinstance(found, CompiledModel) and found in SCRIPTED:
            return self.value_of(SCRIPTED[found])
        if isinstance(found, Module):
            return ModuleValue(found, self.module_path(found))
        if isinstance(found, (tuple, list)):
            return Items(
                tuple(map(self.value_of, found)),
                tuple(getattr(found, "_fields", ())),
                isinstance(found, list),
            )
        if inspect.ismethod(found):
            return FunctionValue(found.__func__, self.value_of(found.__self__))
        if inspect.isfunction(found):
            return FunctionValue(found)
        return Object(found)
