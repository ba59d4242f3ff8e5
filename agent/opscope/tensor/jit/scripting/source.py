"""Get the syntax tree of a Python function, with positions in its file."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from opscope.errors import ScriptError


@dataclass(frozen=True)
class Source:
    """A function's definition, and where it is."""

    file: str
    first_line: int
    lines: list[str]
    tree: ast.FunctionDef

    @property
    def file_name(self) -> str:
        """The file without its folder."""
        return os.path.basename(self.file)

    def location(self, node: ast.AST) -> str:
        """File, line and column, as a graph's nodes have them."""
        return f"{self.file_name}:{self.line(node)}:{getattr(node, 'col_offset', 0)}"

    def line(self, node: ast.AST) -> int:
        """The line in the file."""
        return getattr(node, "lineno", 1) + self.first_line - 1

    def fail(self, node: ast.AST, problem: str, remedy: str) -> NoReturn:
        """Raise an error that shows the place."""
        number = getattr(node, "lineno", 1)
        text = self.lines[number - 1].rstrip("\n") if number <= len(self.lines) else ""
        # ast counts bytes of UTF-8.
        start = len(text.encode()[: getattr(node, "col_offset", 0)].decode())
        end = len(text)
        if getattr(node, "end_lineno", number) == number:
            end = len(text.encode()[: getattr(node, "end_col_offset", 0)].decode())
        raise ScriptError(
            problem,
            file=self.file,
            line=self.line(node),
            column=start,
            width=max(end - start, 1),
            source=text,
            remedy=remedy,
        )


def name_of(function: Callable[..., Any]) -> str:
    """How a function is called in errors."""
    return getattr(function, "__qualname__", repr(function)).replace("<locals>.", "")


def _refuse(function: Callable[..., Any], problem: str, remedy: str) -> NoReturn:
    code = getattr(function, "__code__", None)
    file, line = getattr(code, "co_filename", ""), getattr(code, "co_firstlineno", 0)
    text = linecache.getline(file, line).rstrip()
    start = len(text) - len(text.lstrip())
    raise ScriptError(
        f"{name_of(function)}: {problem}",
        file=file,
        line=line,
        column=start,
        width=max(len(text) - start, 1),
        source=text,
        remedy=remedy,
    )


def read(function: Callable[..., Any]) -> Source:
    """Parse the function's source. Raises ScriptError if it is not deployed."""
    if not inspect.isfunction(function):
        _refuse(function, "it is not written in Python", "a function defined with def")
    if function.__name__ == "<lambda>":
        _refuse(function, "a lambda cannot be scripted", "a function defined with def")
    if hasattr(function, "__wrapped__"):
        _refuse(
            inspect.unwrap(function),
            "a decorator wraps it, and what the decorator does is unknown",
            "call the function without the decorator",
        )
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        _refuse(
            function,
            "generators and coroutines cannot be scripted",
            "a function that returns a list",
        )
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        file = function.__code__.co_filename
        if file.startswith("<"):  # "<stdin>", "<string>"
            _refuse(
                function,
                "it is in no file, and scripting reads the source",
                "the function in a file that is imported",
            )
        _refuse(
            function,
            f"its source is not deployed: {file} is not there, perhaps only its .pyc. "
            "Scripting reads the source",
            f"deploy {os.path.basename(file)} beside the .pyc, or script the model where the "
            "source is, save it, and load the file there",
        )
    text = "".join(lines)
    is_indented = text[:1].isspace()
    # A block around it keeps all columns, and texts of several lines, as they are in the file.
    tree = ast.parse("if 1:\n" + text if is_indented else text)
    if is_indented:
        ast.increment_lineno(tree, -1)
    found = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return Source(function.__code__.co_filename, max(first, 1), lines, found)
