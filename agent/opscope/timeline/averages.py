"""Ranges added up by operator, as a table: the result of `profile().key_averages()`.

Names and columns are those of PyTorch's profiler, so that scripts for its table work here; times
are CPU times, without the profiler's own cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import NamedTuple

Shape = tuple[tuple[int, ...] | None, ...]

_NAME_WIDTH, _SHAPES_WIDTH, _SOURCE_WIDTH = 55, 80, 75
_HTML_NAME_WIDTH = 200
_LINE = "\n"


@dataclass(frozen=True)
class Average:
    """One row: the ranges of an operator, or of an operator with one set of input shapes.

    Times in microseconds. Ranges that were open at the profile's end are not included.
    """

    key: str
    count: int
    self_cpu_time_total: float
    cpu_time_total: float
    self_cpu_memory_usage: int | None
    """Bytes that the operator itself allocated; None if unknown."""
    cpu_memory_usage: int | None
    """Including nested ranges."""
    failed_count: int
    phases: tuple[str, ...]
    input_shapes: Shape | None = None
    stack: tuple[str, ...] = ()
    """With `group_by_stack_n`: the call sites, the innermost first."""

    @property
    def cpu_time(self) -> float:
        """Microseconds per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def name(self) -> str:
        return self.key


_SORTS: dict[str, Callable[[Average], float]] = {
    "self_cpu_time_total": lambda row: row.self_cpu_time_total,
    "cpu_time_total": lambda row: row.cpu_time_total,
    "cpu_time": lambda row: row.cpu_time,
    "count": lambda row: row.count,
    "self_cpu_memory_usage": lambda row: row.self_cpu_memory_usage or 0,
    "cpu_memory_usage": lambda row: row.cpu_memory_usage or 0,
}


class Averages(tuple[Average, ...]):
    """Rows, sorted by self time, largest first."""

    __slots__ = ()

    @property
    def self_cpu_time_total(self) -> float:
        """Sum over all rows, in microseconds: the time within ranges, on all threads."""
        return sum(row.self_cpu_time_total for row in self)

    def total_average(self) -> Average:
        """All rows in one, named `Total`."""
        known = [row.self_cpu_memory_usage for row in self if row.self_cpu_memory_usage is not None]
        return Average(
            key="Total",
            count=sum(row.count for row in self),
            self_cpu_time_total=self.self_cpu_time_total,
            cpu_time_total=self.self_cpu_time_total,
            self_cpu_memory_usage=sum(known) if known else None,
            cpu_memory_usage=sum(known) if known else None,
            failed_count=sum(row.failed_count for row in self),
            phases=(),
        )

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        header: str | None = None,
        max_name_column_width: int = _NAME_WIDTH,
        max_shapes_column_width: int = _SHAPES_WIDTH,
        max_src_column_width: int = _SOURCE_WIDTH,
    ) -> str:
        """The rows as text.

        `sort_by`: `self_cpu_time_total`, `cpu_time_total`, `cpu_time`, `count`,
        `self_cpu_memory_usage` or `cpu_memory_usage`, largest first (otherwise ValueError); None
        keeps the order. `row_limit`: maximum number of rows, -1 for all.
        """
        rows = list(self)
        if sort_by is not None:
            if sort_by not in _SORTS:
                raise ValueError(f"sort_by must be one of {', '.join(_SORTS)}, not {sort_by!r}")
            rows.sort(key=_SORTS[sort_by], reverse=True)
        if row_limit >= 0:
            rows = rows[:row_limit]
        columns = self._columns(
            rows, max_name_column_width, max_shapes_column_width, max_src_column_width
        )
        return "\n".join(_lines(columns, rows, header, self.self_cpu_time_total))

    def _columns(
        self,
        rows: list[Average],
        name_width: int,
        shapes_width: int,
        source_width: int = _SOURCE_WIDTH,
    ) -> list[_Column]:
        whole = self.self_cpu_time_total
        columns = [
            _Column("Name", lambda row: _cut(row.key, name_width), is_text=True),
            _Column("Self CPU %", lambda row: _percent(row.self_cpu_time_total, whole)),
            _Column("Self CPU", lambda row: time_text(row.self_cpu_time_total)),
            _Column("CPU total %", lambda row: _percent(row.cpu_time_total, whole)),
            _Column("CPU total", lambda row: time_text(row.cpu_time_total)),
            _Column("CPU time avg", lambda row: time_text(row.cpu_time)),
        ]
        if any(row.self_cpu_memory_usage is not None for row in rows):
            columns += [
                _Column("CPU Mem", lambda row: bytes_text(row.cpu_memory_usage)),
                _Column("Self CPU Mem", lambda row: bytes_text(row.self_cpu_memory_usage)),
            ]
        columns.append(_Column("# of Calls", lambda row: str(row.count)))
        if any(row.input_shapes is not None for row in rows):
            columns.append(
                _Column(
                    "Input Shapes",
                    lambda row: _cut(shapes_text(row.input_shapes), shapes_width),
                    is_text=True,
                )
            )
        if any(row.stack for row in rows):
            columns.append(
                _Column(
                    "Source Location",
                    lambda row: _LINE.join(
                        _end_of(_within_packages(site), source_width) for site in row.stack
                    ),
                    is_text=True,
                )
            )
        return columns

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """The hundred longest rows as a table, for notebooks."""
        rows = self[:100]
        columns = self._columns(list(rows), _HTML_NAME_WIDTH, _SHAPES_WIDTH)
        head = "".join(f"<th>{escape(column.title)}</th>" for column in columns)
        body = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:{"left" if column.is_text else "right"}">'
                f"{'<br>'.join(map(escape, column.text(row).split(_LINE)))}</td>"
                for column in columns
            )
            + "</tr>"
            for row in rows
        )
        more = f"; {len(self) - len(rows)} more rows" if len(self) > len(rows) else ""
        total = f"Self CPU time total: {time_text(self.self_cpu_time_total)}{more}"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{total}</p>"

    def __repr__(self) -> str:
        return self.table()


class _Column(NamedTuple):
    title: str
    text: Callable[[Average], str]
    is_text: bool = False


def _lines(
    columns: list[_Column], rows: list[Average], header: str | None, whole: float
) -> Iterator[str]:
    # A call site has a line of its own.
    cells = [
        list(line)
        for row in rows
        for line in zip_longest(
            *(column.text(row).split(_LINE) for column in columns), fillvalue=""
        )
    ]
    widths = [
        max(len(column.title), *(len(line[i]) for line in cells), 0)
        for i, column in enumerate(columns)
    ]
    rule = "  ".join("-" * width for width in widths)

    def aligned(texts: Iterable[str]) -> str:
        return "  ".join(
            text.ljust(width) if column.is_text else text.rjust(width)
            for text, width, column in zip(texts, widths, columns, strict=True)
        ).rstrip()

    if header is not None:
        yield header
    yield rule
    yield aligned(column.title for column in columns)
    yield rule
    yield from map(aligned, cells)
    yield rule
    yield f"Self CPU time total: {time_text(whole)}"
    yield ""


def time_text(us: float) -> str:
    """A duration in a suitable unit."""
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if us >= factor:
            return f"{us / factor:.3f}{unit}"
    return f"{us:.3f}us"


def bytes_text(count: int | None) -> str:
    """Bytes in a suitable unit; empty if unknown."""
    if count is None:
        return ""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= factor:
            return f"{count / factor:.2f} {unit}"
    return f"{count} B"


def shapes_text(shapes: Shape | None) -> str:
    """In PyTorch's format: `[[64, 784], [], [128]]`; `[]` also for an input that is no array."""
    if shapes is None:
        return ""
    return str([list(shape) if shape is not None else [] for shape in shapes])


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 3, 0)] + "..."


def _within_packages(site: str) -> str:
    """A call site without the directory that its package is installed in."""
    for folder in ("/site-packages/", "/dist-packages/"):
        _, is_there, rest = site.rpartition(folder)
        if is_there:
            return rest
    return site


def _end_of(text: str, width: int) -> str:
    """Of a path, the end tells more."""
    return text if len(text) <= width else "..." + text[-max(width - 3, 0) :]
