"""The state file: on disk before a segment is removed, in reserved space; an unreadable one is set
aside."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.host.state_file import NAME, PARKED_LIMIT, StateFile
from tests.host.test_restart import Crash, Crashing, calls, dead, populate, said, work
from tests.segments.segment_writer import Process


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "segments"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    directory = tmp_path / "kept"
    directory.mkdir(mode=0o700)
    return directory


def agent(place: Path, kept: Path | None = None, **options: Any) -> Host:
    state = StateFile(str((kept or place) / NAME), segments=str(place))
    return Host([str(place)], consume=True, state=state, **options)


def failing(error: int) -> Any:
    def fail(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    return fail


@pytest.mark.parametrize("step", ["write", "fsync", "rename"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_state_that_cannot_be_saved_keeps_every_segment(
    place: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: int
) -> None:
    work(0, 1, dead(0)).write(place)
    first = agent(place)
    first.collect()
    before = (place / NAME).read_bytes()
    path = work(1, 1, dead(1)).write(place)
    monkeypatch.setattr(os, step, failing(error))
    for failures in (1, 2):
        snapshot = first.collect()
        first.sweep()
        assert calls(snapshot)["numpy::add"] == 2
        assert snapshot.own.state_writes["failed",] == failures
        (warning,) = first.warnings()
        assert f"the state cannot be saved ({os.strerror(error)})" in warning
        assert path.exists()
        assert sorted(os.listdir(place)) == sorted([NAME, path.name])
        assert (place / NAME).read_bytes() == before
    monkeypatch.undo()
    # A process killed now has lost nothing.
    first.close()
    second = agent(place)
    assert calls(second.collect())["numpy::add"] == 2
    assert second.warnings() == []
    assert os.listdir(place) == [NAME]
    second.close()


def test_files_go_once_the_state_can_be_saved_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = work(0, 1, dead(0)).write(place)
    observer = agent(place)
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    observer.collect()
    assert path.exists()
    monkeypatch.undo()
    assert calls(observer.collect())["numpy::add"] == 1
    assert observer.warnings() == []
    assert os.listdir(place) == [NAME]


FULL = """
import os, sys
from pathlib import Path
from tests.host.test_restart import calls, dead, work
from tests.host.test_state_file import agent

place = Path(sys.argv[1])
for number in range(3):
    work(number, 1, dead(number)).write(place)
observer = agent(place)
observer.collect()
for number in range(3, 6):
    work(number, 1, dead(number)).write(place)
try:
    with open(place / "somebody's", "wb", buffering=0) as file:
        while file.write(bytes(4096)) == 4096:
            pass
except OSError as error:
    print(error.strerror)
snapshot = observer.collect()
print(dict(snapshot.own.state_writes), sorted(os.listdir(place)))
print(calls(snapshot)["numpy::add"])
observer.close()
os.unlink(place / "somebody's")
print(calls(agent(place).collect())["numpy::add"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system of its own")
def test_on_a_full_file_system_the_room_that_was_kept_holds_the_state(place: Path) -> None:
    mount = f"mount -t tmpfs -o size=4m,mode=700 opscope {place}"
    script = f'{mount} && exec {sys.executable} -c "$PROGRAM" {place}'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env={**os.environ, "PROGRAM": FULL, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == [
        "No space left on device",
        "{('written',): 2} ['agent.state', \"somebody's\"]",
        "6",
        "6",
    ], done.stderr


# ---- the directory of the state ---------------------------------------------------------------


def test_a_state_beside_the_segments_moves_to_where_it_is_kept_now(place: Path, kept: Path) -> None:
    work(0, 1, dead(0)).write(place)
    earlier = agent(place)
    earlier.collect()
    earlier.close()
    assert os.listdir(place) == [NAME]
    work(1, 1, dead(1)).write(place)
    now = agent(place, kept)
    assert now.goes_on
    assert calls(now.collect())["numpy::add"] == 2
    assert (os.listdir(place), os.listdir(kept)) == ([], [NAME])
    now.close()
    assert calls(agent(place, kept).collect())["numpy::add"] == 2


def test_after_a_rollback_the_state_that_was_saved_last_goes_on(place: Path, kept: Path) -> None:
    for number, at in enumerate((kept, None, kept)):
        work(number, 1, dead(number)).write(place)
        if at is None:
            # As agent/UPGRADING.md says.
            (kept / NAME).rename(place / NAME)
        one = agent(place, at)
        assert calls(one.collect())["numpy::add"] == number + 1
        one.close()


def test_a_crash_at_any_step_of_the_move_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = Crashing(monkeypatch)
    step, ended, expected = 0, True, None
    while ended:
        place, kept = tmp_path / f"segments{step}", tmp_path / f"kept{step}"
        place.mkdir(mode=0o700)
        kept.mkdir(mode=0o700)
        truth = populate(place)
        earlier = agent(place)
        earlier.collect()
        earlier.close()
        work(7, 5, dead(7)).write(place)
        truth.update({"numpy::add": 5, "mm": 15})
        now = agent(place, kept)
        crashing.left = step
        try:
            now.collect()
            ended = False
        except Crash:
            ended = True
        crashing.left = -1
        now.close()
        for _ in range(2):
            after = agent(place, kept)
            snapshot = after.collect()
            expected = expected or said(snapshot)
            assert calls(snapshot) == truth, step
            assert said(snapshot) == expected, step
            after.close()
        assert os.listdir(kept) == [NAME], step
        assert [path.suffix for path in place.iterdir()] == [".seg"], step
        step += 1
    assert step >= 6


def test_two_agents_with_states_of_their_own_do_not_take_in_the_same_files(
    place: Path, kept: Path
) -> None:
    first = agent(place, kept)
    with pytest.raises(AgentError, match="another agent already collects the segments"):
        agent(place)
    first.close()
    agent(place).close()


def test_a_directory_of_segments_that_cannot_be_claimed_does_not_stop_the_agent(
    place: Path, kept: Path
) -> None:
    place.chmod(0o777)
    agent(place, kept).close()


# ---- unreadable states ------------------------------------------------------------------------


def other_version(path: Path, version: int) -> bytes:
    raw = bytearray(path.read_bytes())
    raw[16:20] = version.to_bytes(4, "little")
    path.write_bytes(raw)
    return bytes(raw)


def test_a_state_of_another_version_is_parked_and_not_overwritten(place: Path) -> None:
    newer = set()
    for number in range(PARKED_LIMIT + 2):
        work(number, 1, dead(number)).write(place)
        one = agent(place)
        assert calls(one.collect()).total() == 4
        one.close()
        newer.add(other_version(place / NAME, 2 + number))
        # Both count live processes.
        other = agent(place)
        assert not other.goes_on
        assert f"its version is {2 + number}, not 1; counters restart from 0" in other.resumed
        parked = other.resumed.rpartition("the file is kept as ")[2]
        assert (place / parked).read_bytes() in newer
        other.close()
        assert not (place / NAME).exists()
    assert len(os.listdir(place)) == PARKED_LIMIT


def test_a_newer_state_is_parked_where_it_is(place: Path, kept: Path) -> None:
    work(0, 1, dead(0)).write(place)
    one = agent(place)
    one.collect()
    one.close()
    raw = other_version(place / NAME, 2)
    other = agent(place, kept)
    other.collect()
    (name,) = os.listdir(place)
    assert (place / name).read_bytes() == raw
    assert os.listdir(kept) == [NAME]


def test_a_lasting_process_is_counted_by_the_agent_of_either_version(place: Path) -> None:
    work(0, 3, Process()).write(place)
    one = agent(place)
    one.collect()
    one.close()
    other_version(place / NAME, 2)
    assert calls(agent(place).collect())["numpy::add"] == 3


# ---- an agent that is killed ------------------------------------------------------------------

KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from tests.host.test_restart import Crashing, calls, dead, populate, work
from tests.host.test_state_file import agent, NAME

def kill_at(step):
    left = step
    for name in Crashing.CHANGES:
        def call(*args, real=getattr(os, name), name=name, **kwargs):
            nonlocal left
            if name != "open" or args[1] & os.O_CREAT:
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1
            return real(*args, **kwargs)
        setattr(os, name, call)

for step in itertools.count():
    place, kept = (Path(sys.argv[1]) / f"{name}{step}" for name in ("segments", "kept"))
    for path in (place, kept):
        path.mkdir(mode=0o700)
    work(7, 5, dead(7)).write(place)
    earlier = agent(place)
    earlier.collect()
    earlier.close()
    truth = populate(place)
    truth.update({"numpy::add": 5, "mm": 15})
    pid = os.fork()
    if pid == 0:
        kill_at(step)
        agent(place, kept).collect()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    for _ in range(2):
        after = agent(place, kept)
        assert calls(after.collect()) == truth, step
        after.close()
    assert os.listdir(kept) == [NAME], (step, os.listdir(kept))
    assert [path.suffix for path in place.iterdir()] == [".seg"], (step, os.listdir(place))
    if status == 0:
        break
    assert os.WTERMSIG(status) == signal.SIGKILL
print(step)
"""


def test_an_agent_that_is_killed_at_any_step_loses_nothing_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) >= 10
