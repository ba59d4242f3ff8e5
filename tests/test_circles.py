"""There is no import circle: no file imports itself, directly or through others.

Python: all imports count, also those inside functions and for types only, because readers follow
them all. C: a file depends on another if it uses a function or table that only the other defines,
regardless of the headers it includes. test_layers.py tests the order of folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.c_symbols import calls
from tests.test_layers import own_imports, python_files


def circles(imports: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The sets of files that import each other, by Tarjan's algorithm."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in imports.get(name, ()):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in imports:
        if name not in order:
            visit(name)
    return found


def test_a_circle_is_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "d"]}) == [["b", "c"]]


def test_no_python_files_import_each_other_in_a_circle() -> None:
    files = {module: path for path, module in python_files()}

    def file_of(name: str) -> str:
        while name not in files:
            name = name.rpartition(".")[0]
        return name

    imports = {
        module: sorted({file_of(name) for name in own_imports(path, module)} - {"opscope"})
        for module, path in files.items()
    }
    assert circles(imports) == []


def test_no_c_files_use_each_other_in_a_circle() -> None:
    assert circles(calls()) == []
