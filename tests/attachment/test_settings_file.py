"""The settings file: its trust rules, the order of its rules, and that it never harms a program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.attachment import settings_file
from opscope.attachment.settings_file import NAME, Rule, apply, read, rules
from opscope.host.host import Host
from opscope.record import recorder

from .conftest import Bench

PROGRAM = """
import os, numpy
from opscope.host.host import Host
found = Host([os.environ["OPSCOPE_DIR"]], consume=False, pids=[os.getpid()]).collect()
(process,) = found.processes
print(process.sampling_prob, process.window_ns, process.notes["labels"])
"""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """The directory of the segments of this process; it records everything."""
    recorder.start(str(tmp_path), sampling=1.0)
    yield tmp_path
    recorder.stop(discard=True)


def _sampling(directory: Path) -> float:
    (process,) = Host([str(directory)], consume=False).collect().processes
    return process.sampling_prob


def _applied(directory: Path, text: str, service: str = "web") -> list[str]:
    path = directory / NAME
    path.write_text(text)
    path.chmod(0o644)
    complaints: list[str] = []
    apply(str(directory), service, complaints.append)
    return complaints


def test_the_last_rule_for_a_service_holds(directory: Path) -> None:
    text = "# a comment\nsampling=0.5 *\nsampling=0.25 we?\nsampling=0.1 other\n\n  \nnonsense\n"
    assert _applied(directory, text) == []
    assert _sampling(directory) == 0.25


def test_a_reset_cancels_the_rules_above_it(directory: Path) -> None:
    assert _applied(directory, "sampling=0.5 *\nreset w*\nlabels=a *\n") == []
    assert _sampling(directory) == 1.0


def test_a_service_may_have_any_name() -> None:
    assert rules("sampling=1 my service, of 1\n") == [Rule("sampling=1", "my service, of 1")]
    assert settings_file.matches("my service", "my *")
    assert not settings_file.matches("My service", "my *")


def test_a_bad_rule_is_reported_and_the_others_apply(directory: Path) -> None:
    (complaint,) = _applied(directory, "sampling=9 *\nlabels=b *\nsampling=0.5 *\n")
    assert f"{directory}/{NAME}: sampling='9': must be a probability" in complaint
    assert _sampling(directory) == 0.5


def test_no_file_is_nothing(directory: Path) -> None:
    apply(str(directory), "web", pytest.fail)
    apply(str(directory / "none"), "web", pytest.fail)
    assert read(str(directory)) is None


def _link(path: Path) -> None:
    target = path.parent / "elsewhere"
    target.write_text("sampling=0.5 *\n")
    path.symlink_to(target)


def _writable(path: Path) -> None:
    path.write_text("sampling=0.5 *\n")
    path.chmod(0o666)


def _foreign(path: Path) -> None:
    path.write_text("sampling=0.5 *\n")
    os.chown(path, 65534, -1)


def _huge(path: Path) -> None:
    with open(path, "w") as file:
        os.truncate(file.fileno(), 1 << 40)


_UNTRUSTED = [
    (_link, "symbolic links"),
    (os.mkfifo, "is not a regular file"),
    (os.mkdir, "is not a regular file"),
    (_writable, ": chmod go-w "),
    (_huge, "more than 1048576"),
]
if os.geteuid() == 0:
    _UNTRUSTED.append((_foreign, "belongs to uid 65534, not to uid 0 or root"))


@pytest.mark.parametrize(
    ("make", "said"), _UNTRUSTED, ids=lambda made: getattr(made, "__name__", "")
)
def test_a_file_that_other_users_could_have_made_is_not_trusted(
    directory: Path, make: object, said: str
) -> None:
    make(directory / NAME)  # type: ignore[operator]
    complaints: list[str] = []
    apply(str(directory), "web", complaints.append)
    assert len(complaints) == 1 and said in complaints[0]
    assert _sampling(directory) == 1.0


def test_bytes_that_are_not_text_do_no_harm(directory: Path) -> None:
    (directory / NAME).write_bytes(b"\xff\xfe\0 \x80\nsampling=\xff *\nsampling=0.5 *\n")
    complaints: list[str] = []
    apply(str(directory), "web", complaints.append)
    assert len(complaints) == 1 and "sampling='\ufffd'" in complaints[0]
    assert _sampling(directory) == 0.5


def test_it_wins_over_the_environment_of_a_program(bench: Bench) -> None:
    bench.segments.mkdir(mode=0o700)
    (bench.segments / NAME).write_text("sampling=0.5 web\nlabels=tenant *\n")
    (bench.segments / NAME).chmod(0o644)
    bench.bare |= {"OPSCOPE_SAMPLING": "0.25", "OPSCOPE_LABELS": "a"}
    done = bench.run("-c", PROGRAM, stub=False, OTEL_SERVICE_NAME="web")
    assert (done.stdout, done.stderr) == ("0.5 0 tenant\n", "")
    done = bench.run("-c", PROGRAM, stub=False, OTEL_SERVICE_NAME="other")
    assert (done.stdout, done.stderr) == ("0.25 0 tenant\n", "")


def test_the_process_reports_its_errors(bench: Bench) -> None:
    bench.segments.mkdir(mode=0o700)
    (bench.segments / NAME).write_text("sampling=7 *\n")
    (bench.segments / NAME).chmod(0o644)
    done = bench.run("-c", "import numpy")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (process,) = Host([str(bench.segments)], consume=False).collect().processes
    assert "must be a probability" in process.notes["settings.refused"]
