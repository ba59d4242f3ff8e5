"""Modules made of modules, and lists and dicts of modules and parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, overload

from opscope._tensor import Tensor
from opscope.tensor.nn.module import Module, Parameter


class Sequential(Module):
    """Modules called in sequence, each with the result of the previous one; one OrderedDict gives
    them names.

    A step may also be a function of one tensor; it then has no name among the children.
    """

    def __init__(self, *steps: Any) -> None:
        named: Any = enumerate(steps)
        if len(steps) == 1 and isinstance(steps[0], OrderedDict):
            named = steps[0].items()
        self._names: tuple[str, ...] = ()
        self._steps: tuple[Any, ...] = ()
        for name, step in named:
            self._set(str(name), step)

    def _set(self, name: str, step: Any) -> None:
        """Replaces the step of that name, or adds one at the end."""
        if name in self._names:
            place = self._names.index(name)
            self._steps = (*self._steps[:place], step, *self._steps[place + 1 :])
        else:
            self._names = (*self._names, name)
            self._steps = (*self._steps, step)
        if isinstance(step, Module):
            super().__setattr__(name, step)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            self._set(name, value)
        else:
            super().__setattr__(name, value)

    def forward(self, input: Any) -> Any:
        for step in self._steps:
            input = step(input)
        return input

    def append(self, module: Any) -> Sequential:
        """Adds a step at the end."""
        self._set(str(len(self._steps)), module)
        return self

    def extend(self, sequential: Iterable[Any]) -> Sequential:
        """Adds all of these at the end."""
        for step in sequential:
            self.append(step)
        return self

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._steps)

    def __setitem__(self, place: int, step: Any) -> None:
        self._set(self._names[place], step)

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            chosen = zip(self._names[place], self._steps[place], strict=True)
            return type(self)(OrderedDict(chosen))
        return self._steps[place]


class ModuleList(Module):
    """A list of modules, named by their indices; it computes nothing itself."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        self.extend(() if modules is None else modules)

    def append(self, module: Module) -> ModuleList:
        """Adds one module at the end."""
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds all of these at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds one module before that place."""
        whole = list(self.children())
        whole.insert(index, module)
        for place, each in enumerate(whole):
            setattr(self, str(place), each)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __len__(self) -> int:
        return sum(1 for _ in self.named_children())

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __setitem__(self, place: int, module: Module) -> None:
        setattr(self, str(range(len(self))[place]), module)

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> ModuleList: ...
    def __getitem__(self, place: int | slice) -> Any:
        chosen = list(self.children())[place]
        return ModuleList(chosen) if isinstance(chosen, list) else chosen


class ModuleDict(Module):
    """Modules by name; it computes nothing itself."""

    def __init__(self, modules: Mapping[str, Module] | Iterable[Any] | None = None) -> None:
        self._keys: dict[str, None] = {}
        self.update({} if modules is None else modules)

    def update(self, modules: Mapping[str, Module] | Iterable[Any]) -> None:
        """Adds all of these, a mapping or pairs."""
        for name, module in dict(modules).items():
            self[name] = module

    def _whole(self) -> dict[str, Module]:
        return {name: vars(self)[name] for name in self._keys}

    def __getitem__(self, name: str) -> Any:
        if name not in self._keys:
            raise KeyError(name)
        return vars(self)[name]

    def __setitem__(self, name: str, module: Module) -> None:
        if name not in self._keys and hasattr(type(self), name):
            raise KeyError(f"{name!r} is the name of a method")
        self._keys[name] = None
        setattr(self, name, module)

    def __delitem__(self, name: str) -> None:
        del self._keys[name]
        delattr(self, name)

    def pop(self, name: str) -> Any:
        """Removes the module of that name, and returns it."""
        module = self[name]
        del self[name]
        return module

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._whole().keys()

    def values(self) -> ValuesView[Module]:
        """The modules."""
        return self._whole().values()

    def items(self) -> ItemsView[str, Module]:
        """Names and modules."""
        return self._whole().items()


def _text(value: Any) -> str:
    shape = "x".join(map(str, value.shape))
    kind = {"float32": "torch.float32"}.get(value.dtype.name, f"torch.{value.dtype.name}")
    return f"Parameter containing: [{kind} of size {shape}]"


class ParameterList(Module):
    """A list of parameters, named by their indices; a plain tensor becomes one."""

    def __init__(self, values: Iterable[Tensor] | None = None) -> None:
        self._size = 0
        self.extend(() if values is None else values)

    def append(self, value: Tensor) -> ParameterList:
        """Adds one parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Tensor]) -> ParameterList:
        """Adds all of these at the end."""
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Tensor]) -> ParameterList:
        return self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(self._size))

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return ParameterList([self[each] for each in range(self._size)[place]])
        return vars(self)[str(range(self._size)[place])]

    def __setitem__(self, place: int, value: Tensor) -> None:
        own = value if isinstance(value, Parameter) else Parameter(value)
        setattr(self, str(range(self._size)[place]), own)

    def extra_repr(self) -> str:
        return "\n".join(f"  ({place}): {_text(each)}" for place, each in enumerate(self))


class ParameterDict(Module):
    """Parameters by name; a plain tensor becomes one."""

    def __init__(self, parameters: Any = None) -> None:
        self._keys: dict[str, None] = {}
        self.update({} if parameters is None else parameters)

    def update(self, parameters: Any) -> None:
        """Adds all of these, a mapping or pairs."""
        for name, value in dict(parameters).items():
            self[name] = value

    def __getitem__(self, name: str) -> Any:
        if name not in self._keys:
            raise KeyError(name)
        return vars(self)[name]

    def __setitem__(self, name: str, value: Tensor) -> None:
        self._keys[name] = None
        setattr(self, name, value if isinstance(value, Parameter) else Parameter(value))

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return [self[name] for name in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and parameters."""
        return [(name, self[name]) for name in self._keys]

    def extra_repr(self) -> str:
        return "\n".join(f"  ({name}): {_text(each)}" for name, each in self.items())
