"""Manual pages are made from the help texts, and groff has nothing to complain about."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from opscope.cli import _commands, man
from opscope.cli._group import main


def test_each_command_has_a_page_that_says_what_its_help_says() -> None:
    found = dict(man.pages())
    assert {"opscope", "opscope-fleet-top", "opscope-dashboards-export"} <= set(found)
    assert {f"opscope-{name}" for name in _commands.names()} <= set(found)
    assert r"\fB\-\-since\-start\fR" in found["opscope-top"]
    assert r"opscope run \-\- python train.py" in found["opscope-run"]
    assert r"\fBopscope\-top\fR(1)" in found["opscope"]
    for name, text in found.items():
        assert text.startswith(f'.TH "{name.upper()}" 1'), name


def test_the_command_writes_them(tmp_path: Path) -> None:
    for _ in range(2):
        done = CliRunner().invoke(main, ["man", str(tmp_path)])
        assert done.exit_code == 0, done.output
    written = {one.name for one in (tmp_path / "man1").iterdir()}
    assert written == {f"{name}.1" for name, _ in man.pages()}
    (tmp_path / "file").touch()
    done = CliRunner().invoke(main, ["man", str(tmp_path / "file" / "below")])
    assert done.exit_code == 1 and "file" in done.output


def test_a_reader_that_stops_early_gets_all_pages(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("opscope")
    with subprocess.Popen(
        [program, "man", tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert b"man1" not in process.stderr.read()
    written = {one.name for one in (tmp_path / "man1").iterdir()}
    assert written == {f"{name}.1" for name, _ in man.pages()}


def test_troff_takes_them(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if not groff:
        pytest.skip("no groff")
    for name, text in man.pages():
        done = subprocess.run(
            [groff, "-man", "-ww", "-z"], input=text, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), name


def test_man_shows_a_page(tmp_path: Path) -> None:
    program = shutil.which("man")
    if not program:
        pytest.skip("no man")
    assert CliRunner().invoke(main, ["man", str(tmp_path)]).exit_code == 0
    environ = {**os.environ, "MANPATH": str(tmp_path), "MANWIDTH": "80", "MANPAGER": "cat"}
    done = subprocess.run(
        [program, "opscope-top"], env=environ, capture_output=True, text=True, check=False
    )
    if "minimized" in done.stdout or done.returncode == 16:
        pytest.skip("this system has no manual pages")
    assert "Show where observed processes spend their time" in done.stdout
