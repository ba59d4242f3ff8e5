"""`opscope model`: the contents of model files."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope.errors import OpscopeError

if TYPE_CHECKING:
    from opscope.models.description import Description, TensorFacts

_ROWS = 40


@click.group("model", short_help="Show what a model's file holds.")
def command() -> None:
    """Look into the files of models, without running anything of them."""


@command.command("show")
@click.argument("file", type=click.Path())
@click.option("--extra", metavar="NAME", help="Print the content of this extra file alone.")
@click.option("--all", "show_all", is_flag=True, help=f"Show all rows, not the first {_ROWS}.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(file: str, extra: str | None, show_all: bool, as_json: bool) -> None:
    """Show format, producer, functions, operators, tensors and extra files of FILE.

    Formats: archives of opscope.tensor.save and opscope.tensor.jit.save, torch.save,
    torch.jit.save and torch.export.save, safetensors, ONNX.
    """
    from opscope.models import describe

    found = describe(file)
    if extra is not None:
        if extra not in found.extra:
            names = ", ".join(sorted(found.extra)) or "none"
            raise OpscopeError(f"{file} has no extra file {extra!r}; it has: {names}")
        sys.stdout.buffer.write(found.extra[extra])
    elif as_json:
        click.echo(json.dumps(_for_scripts(found), indent=1))
    else:
        _show(found, sys.maxsize if show_all else _ROWS)


def _for_scripts(found: Description) -> dict[str, object]:
    return {
        "format": found.format,
        "bytes": found.bytes,
        "facts": found.facts,
        "producer": found.producer,
        "functions": found.functions,
        "operators": dict(found.operators.most_common()),
        "tensors": [
            {"name": one.name, "dtype": one.dtype, "shape": one.shape, "bytes": one.bytes}
            for one in found.tensors
        ],
        "extra": {name: len(content) for name, content in found.extra.items()},
        "notes": found.notes,
    }


def _show(found: Description, limit: int) -> None:
    console = Console()
    facts = [f"{key} {value}" for key, value in found.facts.items() if value]
    _line(console, "format", ", ".join([found.format, *facts]))
    _line(console, "size", _size(found.bytes))
    _line(console, "producer", ", ".join(f"{k} {v}" for k, v in found.producer.items()) or "-")
    if found.extra:
        sizes = (f"{name} ({_size(len(text))})" for name, text in sorted(found.extra.items()))
        _line(console, "extra", ", ".join(sizes))
    for note in found.notes:
        _line(console, "note", note)
    if found.functions:
        rows = [("functions",), *((name,) for name in found.functions)]
        _print(console, rows, len(found.functions), limit, "functions")
    if found.operators:
        _print(console, _operators(found), len(found.operators), limit, "operators")
    if found.tensors:
        _print(console, _tensors(found.tensors), len(found.tensors), limit, "tensors")
        count = sum(one.count for one in found.tensors)
        total = _size(sum(one.bytes for one in found.tensors))
        console.print(Text(f"{len(found.tensors)} tensors, {count:,} elements, {total}", "dim"))


def _line(console: Console, key: str, value: str) -> None:
    console.print(Text.assemble((f"{key:<9}", "bold"), value))


def _print(
    console: Console, rows: Sequence[Sequence[str]], count: int, limit: int, what: str
) -> None:
    console.print()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column(what, overflow="fold")
    for heading in rows[0][1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows[1 : limit + 1]:
        table.add_row(*map(Text, row))
    console.print(table)
    if count > limit:
        console.print(Text(f"{count - limit} more {what}; --all shows them", "dim"))


def _operators(found: Description) -> list[tuple[str, ...]]:
    rows = [(name, str(count)) for name, count in found.operators.most_common()]
    return [("operators", "calls"), *rows]


def _tensors(tensors: Sequence[TensorFacts]) -> list[tuple[str, ...]]:
    rows = [
        (one.name or "-", one.dtype, "x".join(map(str, one.shape)) or "scalar", _size(one.bytes))
        for one in tensors
    ]
    return [("tensors", "dtype", "shape", "size"), *rows]


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    size, units = float(count), iter("KMGTPE")
    unit = ""
    while size >= 1024:
        size, unit = size / 1024, next(units)
    return f"{size:.1f} {unit}iB"
