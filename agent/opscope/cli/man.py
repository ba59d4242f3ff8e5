"""`opscope man`: manual pages of all commands, made from their help texts."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
from collections.abc import Iterator
from pathlib import Path

import click

from opscope import __version__
from opscope.cli import _commands
from opscope.errors import OpscopeError
from opscope.replace_file import replace_file

_DEFAULT = "~/.local/share/man"
_WIDTH = 78
# A mark of click, for paragraphs that keep their lines.
_KEPT = "\b"


@click.command("man", short_help="Write manual pages of all commands.")
@click.argument("directory", type=click.Path(file_okay=False), default=_DEFAULT)
def command(directory: str) -> None:
    """Write a manual page for each command into DIRECTORY/man1, by default below
    ~/.local/share/man, where man finds it.

    \b
        opscope man && man opscope-top
        sudo opscope man /usr/local/share/man        # for all users

    The pages are made from the help texts; write them again after an upgrade.
    """
    folder = Path(directory).expanduser() / "man1"
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages():
            replace_file(str(folder / f"{name}.1"), text.encode(), mode=0o644)
            written.append(str(folder / f"{name}.1"))
    except OSError as error:
        raise OpscopeError(f"{error.filename or folder}: {error.strerror}") from error
    click.echo("\n".join(written))


def pages() -> Iterator[tuple[str, str]]:
    """(name, troff with the macros man) of the page of opscope and of each command."""
    from opscope.cli._group import main

    yield from _with_parts(main, "opscope", None)


def _with_parts(
    found: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    context = click.Context(found, parent=parent, info_name=name.rpartition(" ")[2])
    context.terminal_width = context.max_content_width = _WIDTH
    yield name.replace(" ", "-"), _page(found, name, context)
    if isinstance(found, click.Group):
        for part in found.list_commands(context):
            below = found.get_command(context, part)
            if below is not None:
                yield from _with_parts(below, f"{name} {part}", context)


def _page(found: click.Command, name: str, context: click.Context) -> str:
    title, short = name.replace(" ", "-"), found.get_short_help_str(_WIDTH).rstrip(".")
    short = short or "operator observability for Python numerics"
    lines = [
        f'.TH {_quoted(title.upper())} 1 "" {_quoted("opscope " + __version__)}',
        ".SH NAME",
        rf"{_escaped(title)} \- {_escaped(short[:1].lower() + short[1:])}",
    ]
    plain = _plain_help(name)
    if plain:
        return "\n".join([*lines, ".SH DESCRIPTION", *_as_it_is(plain.splitlines()), ""])
    lines += [".SH SYNOPSIS", rf"\fB{_escaped(name)}\fR"]
    lines += [_escaped(" ".join(found.collect_usage_pieces(context)))]
    lines += [".SH DESCRIPTION", *_paragraphs(found.help or "")]
    records = (one.get_help_record(context) for one in found.get_params(context))
    options = [one for one in records if one]
    if options:
        lines.append(".SH OPTIONS")
    for flags, text in options:
        lines += [".TP", rf"\fB{_escaped(flags)}\fR", *filter(None, [_escaped(text)])]
    if isinstance(found, click.Group):
        lines.append(".SH COMMANDS")
        for part in found.list_commands(context):
            below = found.get_command(context, part)
            if below is not None:
                page = _escaped(f"{title}-{part}")
                lines += [".TP", rf"\fB{page}\fR(1)", _escaped(below.get_short_help_str(_WIDTH))]
    return "\n".join([*lines, ""])


def _plain_help(name: str) -> str:
    """What a command prints that needs no click; else ""."""
    command = name.removeprefix("opscope ")
    if command not in _commands.NEED_NO_EXTRA:
        return ""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        importlib.import_module(_commands.module(command)).main(["--help"])
    return said.getvalue().strip()


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines.append(".PP")
        if paragraph.lstrip().startswith(_KEPT):
            lines += _as_it_is(paragraph.lstrip().removeprefix(_KEPT).splitlines()[1:])
        else:
            lines += [_escaped(line.strip()) for line in paragraph.splitlines()]
    return lines


def _as_it_is(lines: list[str]) -> list[str]:
    return [".nf", *map(_escaped, lines), ".fi"]


def _escaped(text: str) -> str:
    r"""Text without meaning for troff: a line may not begin with a point or an apostrophe, and `-`
    would be a hyphen."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{text}" if text.startswith((".", "'")) else text


def _quoted(text: str) -> str:
    return f'"{text}"'
