"""The keys of `opscope top`, in a real terminal of 60, 80 and 200 columns (tmux)."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.cli._keys import _parsed
from opscope.cli._top_state import HELP, TopState
from opscope.host.snapshot import SeriesKey
from opscope.reports.view import Row
from tests.segments.segment_writer import Range, SegmentWriter
from tests.waiting import until

OPS = ("core::conv2d_weight_backward", "core::conv2d_input_backward", "numpy::add", "numpy::matmul")


MANY = [f"core::conv2d_weight_backward_of_layer_{number:02}" for number in range(40)]


class Terminal:
    def __init__(self, place: Path, columns: int) -> None:
        self._socket = ["tmux", "-S", str(place / "tmux"), "-f", "/dev/null"]
        program = f"{Path(sys.executable).parent}/opscope top --since-start --directory {place}"
        size = ["-x", str(columns), "-y", "24"]
        self._run(
            "new-session",
            "-d",
            *size,
            f"env -u TMUX -u COLUMNS -u LINES LC_ALL=C.UTF-8 {program}; sleep 1000",
        )
        until(lambda: "?: keys" in self.text, "the table", pause_s=0.05)

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._socket, *words], capture_output=True, text=True, check=True)
        return done.stdout

    @property
    def text(self) -> str:
        return self._run("capture-pane", "-p")

    def press(self, *keys: str, shows: str = "", hides: str = "\0") -> str:
        self._run("send-keys", *keys)
        until(
            lambda: shows in self.text and hides not in self.text,
            f"{shows!r} without {hides!r} after {keys}",
            pause_s=0.05,
            limit_s=60,
        )
        return self.text

    def close(self) -> None:
        self._run("kill-server")


@pytest.fixture(params=[60, 80, 200])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    if not shutil.which("tmux"):
        pytest.skip("no tmux")
    writer = SegmentWriter()
    writer.note("service.name", "ranker")
    ranges = [Range(op, 1e-3 * (i + 1), 100, self_s=1e-3) for i, op in enumerate(OPS)]
    writer.add(ranges).write(tmp_path)
    made = Terminal(tmp_path, request.param)
    yield made
    made.close()


def rows(text: str) -> list[str]:
    """The first column of the table's rows."""
    lines = text.splitlines()
    return [line.split()[0] for line in lines[2:] if "::" in line.split("  ")[0]]


def test_keys_sort_filter_and_open_details(terminal: Terminal) -> None:
    assert [name[:4] for name in rows(terminal.text)] == ["nump", "nump", "core", "core"]
    assert len({*rows(terminal.text)}) == 4
    terminal.press("s", shows="sort self")
    terminal.press("S", shows="sort total")
    terminal.press("f", "conv2d_w", shows="filter: conv2d_w_", hides="numpy")
    text = terminal.press("Enter", shows="filter 'conv2d_w'")
    assert len(rows(text)) == 1
    text = terminal.press("Enter", shows="(q: back)")
    assert "ranker" in text and "phase" in text
    terminal.press("q", shows="?: keys")
    terminal.press("Escape", shows="numpy::matmul", hides="filter")
    terminal.press("p", shows="phase ")
    help_text = terminal.press("?", shows=HELP.splitlines()[-1])
    assert [line.rstrip() for line in help_text.splitlines()][: HELP.count("\n") + 1] == [
        line.rstrip() for line in HELP.splitlines()
    ]
    terminal.press("q", shows="?: keys")
    terminal.press("q", hides="?: keys")


@pytest.fixture(params=[60, 80, 200])
def crowded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    """More operators than lines, one with a name of wide characters, and every line that may stand
    below the table."""
    if not shutil.which("tmux"):
        pytest.skip("no tmux")
    ranges = [Range(op, 1e-3 * (40 - i), self_s=1e-3 * (40 - i)) for i, op in enumerate(MANY)]
    wide = Range("演算子" * 20, 1.0, self_s=1.0)
    unsure = Range("numpy::add", 0.01, weight=80.0, self_s=0.01)
    writer = SegmentWriter(window_ns=3 * 10**6, period_ns=250 * 10**6)
    writer.add([wide, unsure, *ranges]).write(tmp_path)
    (tmp_path / "1-1-0000000000000001.seg").write_bytes(bytes(4096))
    made = Terminal(tmp_path, request.param)
    yield made
    made.close()


def test_all_operators_can_be_reached_in_a_crowded_terminal(crowded: Terminal) -> None:
    text = crowded.text
    assert "unreadable segment" in text and "standard error above" in text
    assert "1.04 s" in text.splitlines()[2], "no number is cut beside a wide name"
    assert "_39" not in text
    crowded.press("End", shows="_39", hides="numpy::add")
    crowded.press("Home", shows="numpy::add", hides="_39")
    crowded.press("NPage", "NPage", hides="_00")
    crowded.press("Home", "Down", "Enter", shows="(q: back)", hides="…")


def test_rows_of_one_operator_in_several_processes_are_marked_one_by_one() -> None:
    rows = [
        Row(SeriesKey("", "numpy::add", "", (), pid), 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None, 9, 0.0, 0)
        for pid in range(5)
    ]
    state, seen = TopState("total"), []
    for _ in range(6):
        state.press("down", rows, 3, [])
        seen.append((state.marked and state.marked.process, state.first))
    assert seen == [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2), (4, 2)]
    state.press("page up", rows, 3, [])
    assert (state.marked and state.marked.process, state.first) == (1, 1)


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        ("qs", ["q", "s"]),
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b[5~\x1b[6~\x1b[H\x1bOF", ["page up", "page down", "home", "end"]),
        ("\x1b", ["escape"]),
        ("\x1b[15~x", ["x"]),
        ("\x1b[1;5Cx", ["x"]),
        ("\r\x7fé\x01", ["enter", "backspace", "é"]),
    ],
)
def test_bytes_of_a_terminal_become_keys(raw: str, keys: list[str]) -> None:
    assert _parsed(raw) == keys
