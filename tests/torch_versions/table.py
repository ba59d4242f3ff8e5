"""The Markdown table of the versions of PyTorch that were tried, native/bridges/VERSIONS.md."""

import re
from collections.abc import Mapping
from pathlib import Path

from tests.torch_versions.findings import Outcomes, Trial

PATH = Path(__file__).parents[2] / "native" / "bridges" / "VERSIONS.md"

_HEAD = """\
# PyTorch versions that we have tried

`make torch-matrix` writes this file. Each version ran as the wheel that pip finds for x86-64, on a
machine without a GPU; the part after the plus sign names the CUDA that it is built for.

- **Bridge**: attached, or the reason why not. The tests run where it attaches.
- **Without**: parts of the bridge that do not work with that version; the rest does.
- **Tests**: of `tests/bridges/test_torch_*.py`. What failed ran a second time, by itself. If not
  all ran, the brackets have pytest's `-m`.
- **Calls**: those of a training loop, recorded at p = 1, against those of torch.profiler.

"""
_COLUMNS = (
    *("PyTorch", "Python", "Bridge", "Without", "Tests passed", "failed", "skipped"),
    "Calls",
)


def row(trial: Trial, tests: Outcomes, marks: str = "") -> list[str]:
    """Of a version that the bridge attaches to. `marks`: pytest's -m, if not all tests ran."""
    found = trial.differences.items()
    differing = ", ".join(f"{op} {ours} of {theirs}" for op, (ours, theirs) in found)
    return [
        trial.torch,
        trial.python,
        "attached",
        trial.without or "-",
        f"{len(tests.passed)}{f' ({marks})' if marks else ''}",
        f"{len(tests.failed)}{': ' * bool(tests.failed)}{', '.join(sorted(tests.failed))}",
        str(len(tests.skipped)),
        f"differ: {differing}" if differing else f"all {trial.calls:,} equal",
    ]


def refused(trial: Trial) -> list[str]:
    """Of a version that the bridge does not attach to."""
    return [trial.torch, trial.python, trial.reason, *"-----"]


def not_tried(version: str, reason: str) -> list[str]:
    """Of a version that could not be had."""
    return [version, "-", f"not tried: {reason}", *"-----"]


def is_good(cells: list[str]) -> bool:
    """It attached, no test failed, and the calls were equal."""
    return cells[2] == "attached" and cells[5] == "0" and cells[7].endswith("equal")


def read(text: str) -> dict[str, list[str]]:
    """The rows of the file, by version without the part after a plus sign."""
    lines = (line for line in text.splitlines() if re.match(r"\| \d", line))
    rows = [line.strip("| ").split(" | ") for line in lines]
    return {_version(cells): cells for cells in rows}


def render(rows: Mapping[str, list[str]]) -> str:
    ordered = sorted(rows.values(), key=lambda cells: _numbers(cells[0]))
    lines = [list(_COLUMNS), ["---"] * len(_COLUMNS), *ordered]
    return _HEAD + "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def update(new: list[str]) -> None:
    """Writes the row into the file, in place of an earlier one of the same version."""
    new = [" ".join(cell.replace("|", "/").split()) for cell in new]
    rows = read(PATH.read_text()) if PATH.exists() else {}
    PATH.write_text(render({**rows, _version(new): new}))


def _version(cells: list[str]) -> str:
    return cells[0].partition("+")[0]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version.partition("+")[0])]
