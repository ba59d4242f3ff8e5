"""An installation interrupted at any step, by a signal or an error, is complete or absent."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from native.cross.build import ROOT
from opscope.errors import OpscopeError
from opscope.installation import path_file, payload, payload_swap
from opscope.installation.interruption import Interrupted, Interruption
from tests.forked_programs import ForkedPrograms
from tests.installation.conftest import OPSCOPE, Venv, contents
from tests.installation.interrupted import ENDS, SIGNALS, remove, write

STEPS = ForkedPrograms(f"sys.path.append({str(ROOT)!r}); import tests.installation.interrupted")


# `make test-long` tries the others.
SHORT = (signal.SIGTERM, signal.SIGKILL, -errno.ENOSPC)
EACH_END = [pytest.param(end, marks=() if end in SHORT else pytest.mark.long) for end in ENDS]


def in_fork(directory: Path, call: str) -> None:
    """Calls that function of interrupted.py in a small process, and fails as it fails."""
    script = directory / "program.py"
    script.write_text(
        "from pathlib import PosixPath\n"
        f"from tests.installation import interrupted\ninterrupted.{call}\n"
    )
    done = STEPS.run(script, directory, os.environ, timeout_s=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("what", EACH_END)
@pytest.mark.parametrize(
    ("command", "package"), [("install", None), ("install", "/old/opscope"), ("uninstall", "/o")]
)
def test_an_environment_has_all_of_it_or_nothing(
    environment: Venv, tmp_path: Path, what: int, command: str, package: str | None
) -> None:
    place = environment.directory, environment.site
    in_fork(tmp_path, f"check_environment(*{place!r}, {int(what)}, {command!r}, {package!r})")


@pytest.mark.parametrize("what", EACH_END)
@pytest.mark.parametrize("case", ["new", "into an empty directory", "upgrade", "remove"])
def test_a_payload_is_replaced_atomically(tmp_path: Path, what: int, case: str) -> None:
    in_fork(tmp_path, f"check_payload({tmp_path!r}, {int(what)}, {case!r})")


def test_an_unfinished_payload_is_reported(tmp_path: Path) -> None:
    write(tmp_path, "1")
    payload_swap.begin(tmp_path)
    with pytest.raises(OpscopeError, match="did not finish; repeat it, or uninstall"):
        payload.describe(str(tmp_path))
    remove(tmp_path)
    assert os.listdir(tmp_path) == []


def test_two_do_not_write_one_payload(tmp_path: Path) -> None:
    with payload_swap.claimed(tmp_path), pytest.raises(OpscopeError, match="another opscope"):
        write(tmp_path, "1")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_middle_of_a_real_installation_leaves_nothing(
    environment: Venv, tmp_path: Path, number: int
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    attach = environment.site / path_file.NAME
    with (environment.site / "tests.pth").open("a") as file:
        # The trial of what has been installed waits.
        file.write(f"import os; os.path.exists({str(attach)!r}) and open({str(pipe)!r}).read()\n")
    before = contents(environment.directory)
    with (
        subprocess.Popen(
            [OPSCOPE, "install", "--venv", environment.directory],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        ) as command,
        pipe.open("w"),
    ):
        assert attach.exists()
        command.send_signal(number)
        out, err = command.communicate(timeout=300)
    assert (command.returncode, out) == (128 + number, "")
    assert err == f"Error: {signal.Signals(number).name}: nothing is installed\n"
    assert contents(environment.directory) == before


def test_a_signal_that_is_ignored_stays_so() -> None:
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGHUP)
            interruption.check()
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, earlier)


def interrupted_within(interruption: Interruption) -> None:
    with interruption.allowed():
        os.kill(os.getpid(), signal.SIGINT)
    raise AssertionError("not reached")


@pytest.mark.usefixtures("signals_at_default")
def test_a_signal_waits_until_it_is_allowed_and_comes_once() -> None:
    with Interruption() as interruption:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted, match="SIGTERM"), interruption.allowed():
            raise AssertionError("not reached")
        with pytest.raises(Interrupted), interruption.allowed():
            pass
        os.kill(os.getpid(), signal.SIGTERM)
    with Interruption() as interruption, pytest.raises(Interrupted) as caught:
        interrupted_within(interruption)
    assert caught.value.exit_status == 130


def test_on_a_full_disk_nothing_is_left(environment: Venv, tmp_path: Path) -> None:
    """A separate file system that is completely full."""
    if os.geteuid() != 0:
        pytest.skip("mounts a file system of its own")
    script = (
        'mount -t tmpfs -o size=256k,mode=755 none "$PLACE" && '
        'head -c 200k /dev/zero > "$PLACE/full"; "$@"; ls -A "$PLACE"'
    )
    place = tmp_path / "disk"
    place.mkdir()
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(OPSCOPE), "install"]
    done = subprocess.run(
        [*command, "--payload", str(place / "payload")],
        env={**os.environ, "PLACE": str(place)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "No space left on device" in done.stderr
    assert done.stdout == "full\n"
