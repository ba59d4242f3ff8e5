"""The keys of `opscope top`, in a real terminal of 60, 80 and 200 columns (tmux)."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.cli._keys import _parsed
from opscope.cli._top_state import HELP
from tests.segments.segment_writer import Range, SegmentWriter
from tests.waiting import until

OPS = ("core::conv2d_weight_backward", "core::conv2d_input_backward", "numpy::add", "numpy::matmul")


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


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        ("qs", ["q", "s"]),
        ("\x1b[A\x1bOB", ["up", "down"]),
        ("\x1b", ["escape"]),
        ("\x1b[15~x", ["x"]),
        ("\x1b[1;5Cx", ["x"]),
        ("\r\x7fé\x01", ["enter", "backspace", "é"]),
    ],
)
def test_bytes_of_a_terminal_become_keys(raw: str, keys: list[str]) -> None:
    assert _parsed(raw) == keys
