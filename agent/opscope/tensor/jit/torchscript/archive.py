"""A TorchScript archive: its tree of modules, its constants, and its code as syntax trees.

The layout is the one that `torch.jit.save` of PyTorch 2.13 writes: `data.pkl` has the modules,
`constants.pkl` the tensors `CONSTANTS.c0`, ..., and `code/PATH.py` the classes and functions whose
names begin with PATH, its slashes being dots.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from opscope._tensor import read_pickle
from opscope.tensor.archive import torch_files
from opscope.tensor.archive.files import Archive

_CONSTANTS = "constants.pkl"
_CODE = "code/"
_CLASSES = ("__torch__.", "torch.jit._pickle.")
_FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError, MemoryError)


@dataclass
class Instance:
    """An object of a class of the program: a module, mostly."""

    class_name: str
    attributes: dict[str, Any]


@dataclass
class TorchScript:
    """What the archive holds. Nothing of it has run."""

    root: Instance
    constants: tuple[Any, ...]
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)

    def method(self, instance: Instance, name: str) -> ast.FunctionDef | None:
        """The method of the instance's class; None if the class has none of that name."""
        defined = self.classes.get(instance.class_name)
        for statement in defined.body if defined else ():
            if isinstance(statement, ast.FunctionDef) and statement.name == name:
                return statement
        return None


def is_torchscript(archive: Archive) -> bool:
    """Whether the archive has the two pickles that only TorchScript has together."""
    return _CONSTANTS in archive.entries and torch_files.PICKLE in archive.entries


def read(archive: Archive) -> TorchScript:
    """The program in the archive. ValueError names file, entry and reason for a damaged one."""
    root = torch_files.read(archive, _Instances(archive), _CLASSES)
    if not isinstance(root, Instance):
        raise archive.fault(torch_files.PICKLE, f"a {type(root).__name__}, and no module")
    program = TorchScript(root, _constants(archive))
    for name in archive.entries:
        if name.startswith(_CODE) and name.endswith(".py"):
            _add_code(program, archive, name)
    if root.class_name not in program.classes:
        raise archive.fault(torch_files.PICKLE, f"the code has no class {root.class_name[:60]}")
    return program


def _add_code(program: TorchScript, archive: Archive, entry: str) -> None:
    path = entry.removeprefix(_CODE).removesuffix(".py").replace("/", ".")
    try:
        tree = ast.parse(archive.text(entry))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise archive.fault(entry, f"no code that parses: {error}") from None
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            program.classes[f"{path}.{statement.name}"] = statement
        elif isinstance(statement, ast.FunctionDef):
            program.functions[f"{path}.{statement.name}"] = statement
        else:
            kind = type(statement).__name__
            raise archive.fault(entry, f"line {statement.lineno}: {kind} outside a function")


def _constants(archive: Archive) -> tuple[Any, ...]:
    reader = _Instances(archive, "constants/")
    content = archive.read(_CONSTANTS)
    try:
        constants = read_pickle(
            content,
            torch_files.GLOBALS,
            _CLASSES,
            reader.call,
            reader.global_of,
            reader.storage,
        )
    except _FAULTS as error:
        if str(error).startswith(f"{archive.path}: "):
            raise
        raise archive.fault(_CONSTANTS, str(error) or type(error).__name__) from None
    if not isinstance(constants, tuple):
        raise archive.fault(_CONSTANTS, f"a {type(constants).__name__}, and no tuple")
    return constants


class _Instances(torch_files.Reader):
    """Makes objects of the program's classes."""

    def call(self, name: str, arguments: tuple[Any, ...], state: Any, pairs: dict[Any, Any]) -> Any:
        if name.startswith("__torch__."):
            if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
                raise ValueError(f"an object of {name[:60]} without attributes")
            return Instance(name, state)
        if name.startswith("torch.jit._pickle."):
            return arguments[0] if arguments else None
        return super().call(name, arguments, state, pairs)
