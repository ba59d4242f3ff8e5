"""Programs under other event loops, debuggers, coverage and sanitizers: every call is counted, and
their output is the same as unobserved."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.observed_host import ObservedHost, environ_of

CALLS = 4 * 250

WORK = """
import numpy as np
a = np.ones(10)
def work(count):
    for i in range(count):
        np.add(a, a)
        if i % 10 == 0: time.sleep(0)
"""

FORK = """
child = os.fork()
if child == 0:
    work(250)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(subprocess.run(["echo", "said"], capture_output=True).stdout)
"""

# Without gevent's fork and waitpid: on a loaded machine one such program in 50 waits for its child
# forever, also unobserved.
GEVENT = f"""
from gevent import monkey; monkey.patch_all(os=False, signal=False)
import gevent, os, subprocess, threading, time
{WORK}
gevent.joinall([gevent.spawn(work, 250) for _ in range(2)])
thread = threading.Thread(target=work, args=(250,))
thread.start(); thread.join()
{FORK}
"""

EVENTLET = f"""
import warnings; warnings.simplefilter("ignore")
import eventlet; eventlet.monkey_patch()
import os, subprocess, time
{WORK}
pool = eventlet.GreenPool()
for _ in range(3): pool.spawn(work, 250)
pool.waitall()
{FORK}
"""

UVLOOP = """
import asyncio, uvloop
import numpy as np
a = np.ones(10)
async def work(count):
    for i in range(count):
        np.add(a, a)
        if i % 10 == 0: await asyncio.sleep(0)
def in_thread(count):
    for _ in range(count): np.add(a, a)
async def main():
    await asyncio.gather(*(work(250) for _ in range(3)), asyncio.to_thread(in_thread, 250))
    process = await asyncio.create_subprocess_exec("echo", "said", stdout=-1)
    print((await process.communicate())[0])
uvloop.run(main())
"""

PLAIN = f"""
import numpy as np
a = np.ones(10)
for _ in range({CALLS}): np.add(a, a)
print("done")
"""


def needs(module: str) -> None:
    """Skips without the module, and does not import it: eventlet would warn at each later fork."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"no {module}")


def both(host: ObservedHost, *command: str, **variables: str) -> str:
    """The program's output: the same observed and unobserved, with nothing on standard error."""
    bare = subprocess.run(
        command, env=environ_of(host.directory) | variables, capture_output=True, text=True
    )
    host.environ = host.environ | variables
    with host.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        output, errors = program.communicate()
    assert (program.returncode, output.decode(), errors.decode()) == (
        bare.returncode,
        bare.stdout,
        bare.stderr,
    )
    assert (bare.returncode, bare.stderr) == (0, "")
    return bare.stdout


@pytest.mark.parametrize(
    ("module", "program"),
    [("gevent", GEVENT), ("eventlet", EVENTLET), ("uvloop", UVLOOP)],
    ids=["gevent", "eventlet", "uvloop"],
)
def test_other_event_loops_are_observed_call_by_call(
    host: ObservedHost, module: str, program: str
) -> None:
    needs(module)
    assert "said" in both(host, sys.executable, "-c", program)
    assert host.calls()["numpy::add"] == CALLS


def test_a_program_under_debugpy_is_observed(host: ObservedHost, tmp_path: Path) -> None:
    needs("debugpy")
    script = tmp_path / "plain.py"
    script.write_text(PLAIN)
    options = ("--listen", "127.0.0.1:0", "--configure-subProcess", "false")
    command = (sys.executable, "-m", "debugpy", *options, str(script))
    assert both(host, *command, PYDEVD_DISABLE_FILE_VALIDATION="1") == "done\n"
    assert host.calls()["numpy::add"] == CALLS


def test_a_program_under_the_address_sanitizer_is_observed(host: ObservedHost) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True
    ).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("gcc has no address sanitizer")
    variables = {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    assert both(host, sys.executable, "-c", PLAIN, **variables) == "done\n"
    assert host.calls()["numpy::add"] == CALLS
