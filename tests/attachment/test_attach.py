"""Attaching to a real NumPy: automatically under `opscope run`, and on the program's request."""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path

import pytest

from .conftest import Bench

LIVE, CLOSED = 1, 2
NOWHERE = f"/proc/opscope-{os.getpid()}"

OWN = "import sys, opscope; status = opscope.attach_status;"


def state(segment: Path) -> int:
    """Field `state` of opscope_segment_header (native/include/opscope/segment.h)."""
    (value,) = struct.unpack_from("<I", segment.read_bytes(), 28)
    return int(value)


def notes(segment: Path, *keys: str) -> list[str]:
    """The last value of each note, searched for in the bytes."""
    content = segment.read_bytes()
    values = []
    for key in keys:
        _, _, rest = content.rpartition(b"\0" + key.encode() + b"\0")
        values.append(rest.partition(b"\0")[0].decode())
    return values


def run(bench: Bench, program: str, *, observed: bool = False, **variables: str) -> str:
    done = bench.run(
        "-c", program, observed=observed, stub=False, OPSCOPE_DIR=str(bench.segments), **variables
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_an_unmodified_program_leaves_a_closed_segment_with_its_facts(bench: Bench) -> None:
    script = bench.script("work.py", "import numpy\nprint(numpy.__version__)\n")
    done = bench.run(script, stub=False, OTEL_SERVICE_NAME="web")
    assert (done.returncode, done.stderr) == (0, "")
    (segment,) = bench.segment_files()
    assert state(segment) == CLOSED
    python = ".".join(map(str, sys.version_info[:3]))
    facts = notes(segment, "program", "service.name", "python", "bridge.numpy", "numpy")
    assert facts == ["work.py", "web", python, "attached", done.stdout.strip()]
    assert bench.reasons() == []


def test_a_killed_program_leaves_its_segment(bench: Bench) -> None:
    script = bench.script("work.py", "import numpy, os\nos.kill(os.getpid(), 9)\n")
    assert bench.run(script, stub=False).returncode == -signal.SIGKILL
    (segment,) = bench.segment_files()
    assert state(segment) == LIVE


@pytest.mark.parametrize("way_out", ["sys.exit(5)", "raise SystemExit(5)"])
def test_the_segment_is_closed_whichever_way_the_program_exits(bench: Bench, way_out: str) -> None:
    assert bench.run("-c", f"import numpy, sys; {way_out}", stub=False).returncode == 5
    (segment,) = bench.segment_files()
    assert state(segment) == CLOSED


def test_the_recorder_runs_until_the_programs_exit_functions_have_run(bench: Bench) -> None:
    program = (
        f"import numpy, atexit; {OWN}"
        "atexit.register(lambda: print(opscope.record.recorder.status().running))"
    )
    assert run(bench, program, observed=True) == "True\n"


def test_attach_records_at_once_what_is_imported(bench: Bench) -> None:
    program = f"import numpy; {OWN} opscope.attach(); print(status().bridges)"
    assert run(bench, program) == "{'numpy': 'attached', 'blas': 'attached'}\n"


def test_attach_waits_for_what_is_not_imported(bench: Bench) -> None:
    program = (
        f"{OWN} opscope.attach(); print(status().attached, status().bridges);"
        "import numpy; print(status().bridges)"
    )
    assert run(bench, program) == "True {}\n{'numpy': 'attached', 'blas': 'attached'}\n"


def test_a_numpy_that_is_just_being_imported_is_attached_to_when_it_is_whole(bench: Bench) -> None:
    # The finder runs in the middle of the import, and attaches there.
    program = (
        f"{OWN}\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.startswith('numpy.'):\n"
        "            opscope.attach()\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import numpy\n"
        "print(status().bridges)"
    )
    assert run(bench, program, observed=True) == "{'numpy': 'attached', 'blas': 'attached'}\n"
    denied = run(bench, program, observed=True, OPSCOPE_INCLUDE="none-such")
    assert denied == "{'numpy': 'attached', 'blas': 'attached'}\n"


def test_attach_and_detach_may_be_repeated_and_alternate(bench: Bench) -> None:
    program = (
        f"import numpy; {OWN}\n"
        "opscope.detach(); opscope.attach(); opscope.attach(); first = status().segment\n"
        "opscope.detach(); opscope.detach(); print(status().code, status().segment == '')\n"
        "opscope.attach(); print(status().code, status().segment != first)\n"
    )
    assert run(bench, program) == "detached True\nattached True\n"
    assert [state(segment) for segment in bench.segment_files()] == [CLOSED, CLOSED]


def test_after_detach_a_framework_imported_later_is_left_alone(bench: Bench) -> None:
    program = (
        f"{OWN} opscope.attach(); opscope.detach();"
        "print([f for f in sys.meta_path if type(f).__name__ == 'ImportHook']);"
        "import numpy; print(status().bridges)"
    )
    assert run(bench, program) == "[]\n{}\n"


def test_an_import_does_not_restart_ended_observation(bench: Bench) -> None:
    program = f"{OWN} opscope.detach(); import numpy; print(status().code, status().bridges)"
    assert run(bench, program, observed=True) == "detached {}\n"


def test_attaching_in_an_observed_program_changes_nothing(bench: Bench) -> None:
    program = f"import numpy; {OWN} one = status(); opscope.attach(); print(one == status())"
    assert run(bench, program, observed=True) == "True\n"


def test_the_public_names_are_functions_whatever_was_imported_first(bench: Bench) -> None:
    program = (
        f"import numpy; {OWN} import opscope.attachment.session;"
        "print(callable(opscope.attach), callable(opscope.detach), status().attached)"
    )
    assert run(bench, program, observed=True) == "True True True\n"


def test_late_modules_of_numpy_are_attached_when_they_come(bench: Bench) -> None:
    program = (
        "import numpy, sys; from opscope.bridges import numpy as bridge; n = len(bridge.seen());"
        "import numpy.fft, numpy.random; print(len(bridge.seen()) > n,"
        "[name for f in sys.meta_path if type(f).__name__ == 'ImportHook'"
        " for name in f.waiting if name.startswith('numpy')])"
    )
    assert run(bench, program, observed=True) == "True []\n"


def test_a_numpy_of_unknown_version_disables_its_bridge_only(bench: Bench) -> None:
    program = f"import numpy; {OWN} print(status().attached, status().bridges)"
    done = bench.run("-c", program)
    assert done.stdout.startswith("True {'numpy': '")
    assert bench.codes() == ["bridge"]
    (segment,) = bench.segment_files()
    assert notes(segment, "bridge.numpy") != ["attached"]


def test_a_bridge_that_breaks_disables_itself_only(bench: Bench) -> None:
    program = (
        "import opscope.bridges.numpy as bridge; bridge.attach = lambda: 1 / 0\n"
        f"import numpy; {OWN} print(status().attached, status().bridges)"
    )
    reason = "ZeroDivisionError('division by zero')"
    expected = f"True {{'numpy': \"{reason}\", 'blas': 'attached'}}\n"
    assert run(bench, program, observed=True) == expected


def test_a_bridge_that_is_not_wanted_is_left_out(bench: Bench) -> None:
    program = f"import numpy; {OWN} print(status().attached, status().bridges)"
    assert run(bench, program, observed=True, OPSCOPE_BRIDGES="none") == "True {}\n"


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"OPSCOPE_ENABLED": "0"}, "disabled"),
        ({"OPSCOPE_EXCLUDE": "-c"}, "denied"),
        ({"OPSCOPE_SAMPLING": "2"}, "config"),
        ({"OPSCOPE_DIR": NOWHERE}, "recorder"),
    ],
)
def test_attach_raises_nothing_and_says_why_not(
    bench: Bench, variables: dict[str, str], code: str
) -> None:
    program = f"{OWN} opscope.attach(); print(status().attached, status().code, status().segment)"
    environ = {**bench.bare, "OPSCOPE_DIR": str(bench.segments), **variables}
    done = bench.start([sys.executable, "-c", program], environ)
    assert (done.stdout, done.stderr) == (f"False {code} \n", "")
    assert bench.codes() + bench.reasons_elsewhere(NOWHERE) == [code]


def test_a_recorder_that_breaks_is_written_down_as_an_error(bench: Bench) -> None:
    program = (
        f"import opscope.record.recorder as r; {OWN}\n"
        "def start(*a, **k): raise RuntimeError('broken')\n"
        "r.start = start\nimport numpy\nprint(status().code, status().text)"
    )
    assert run(bench, program, observed=True) == "error RuntimeError('broken')\n"
    assert bench.codes() == ["error"]


def test_the_programs_own_interrupt_is_not_swallowed(bench: Bench) -> None:
    program = (
        "import opscope.record.recorder as r\n"
        "def start(*a, **k): raise KeyboardInterrupt\n"
        "r.start = start\n"
        "try:\n    import numpy\nexcept KeyboardInterrupt:\n    print('interrupted')"
    )
    assert run(bench, program, observed=True) == "interrupted\n"


def test_a_forked_child_has_a_segment_and_facts_of_its_own(bench: Bench) -> None:
    program = (
        f"import numpy, os; {OWN}\nif os.fork() == 0:\n    numpy.add(1, 1); os._exit(0)\nos.wait()"
    )
    run(bench, program, observed=True)
    segments = bench.segment_files()
    assert len(segments) == 2
    assert [notes(s, "program", "bridge.numpy") for s in segments] == [["-c", "attached"]] * 2


def test_a_forked_child_without_a_segment_does_not_say_that_it_is_attached(bench: Bench) -> None:
    program = """
import numpy, opscope, os, resource
assert opscope.attach_status().attached
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 4096))
if os.fork() == 0:
    numpy.add(1, 1)
    found = opscope.attach_status()
    print(found.attached, found.code, repr(found.segment), flush=True)
    os._exit(0)
os.wait()
assert opscope.attach_status().attached
"""
    assert run(bench, program, observed=True) == "False recorder ''\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
@pytest.mark.parametrize("imported", ["", "import multiprocessing"])
def test_spawned_processes_of_an_attached_program_are_attached(
    bench: Bench, method: str, imported: str
) -> None:
    script = bench.script(
        "program.py",
        f"{imported}\nimport opscope\n"
        "def child():\n"
        "    with opscope.record_function('in the child'): pass\n"
        "if __name__ == '__main__':\n"
        "    opscope.attach()\n"
        "    import multiprocessing\n"
        f"    context = multiprocessing.get_context({method!r})\n"
        "    def run():\n"
        "        process = context.Process(target=child)\n"
        "        process.start(); process.join()\n"
        "    run()\n"
        "    opscope.detach()\n"
        "    run()\n",
    )
    variables = {"OPSCOPE_DIR": str(bench.segments), "OPSCOPE_SAMPLING": "1"}
    done = bench.run(script, observed=False, stub=False, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    files = bench.segment_files()
    assert len(files) == 2
    assert sum(b"in the child" in file.read_bytes() for file in files) == 1
    assert [notes(file, "program") for file in files] == [["program.py"]] * 2


def test_a_program_of_opscopes_own_tensors_is_observed(bench: Bench) -> None:
    script = bench.script("work.py", "from opscope import tensor\ntensor.zeros((2,)) + 1\n")
    done = bench.run(script, stub=False, OPSCOPE_SAMPLING="1")
    assert (done.returncode, done.stderr) == (0, "")
    (segment,) = bench.segment_files()
    assert b"core::add" in segment.read_bytes()


def test_a_forked_child_can_attach_though_another_thread_was_attaching(bench: Bench) -> None:
    program = (
        "import warnings; warnings.simplefilter('ignore')\n"
        f"import numpy, os, threading; {OWN} from opscope.attachment import session\n"
        "held = threading.Event(); go = threading.Event()\n"
        "def hold():\n"
        "    with session._session.lock:\n"
        "        held.set(); go.wait()\n"
        "thread = threading.Thread(target=hold); thread.start(); held.wait()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    os._exit(0 if status().attached else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); go.set(); thread.join()"
    )
    assert run(bench, program, observed=True) == "0\n"
