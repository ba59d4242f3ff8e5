"""A command as the first process of a container, whose pid is 1."""

import os
import signal
import subprocess
import sys

import pytest

UNSHARE = ("unshare", "--pid", "--fork", "--kill-child")
# A command that takes long until it has a handler of its own.
STARTING = """
import os
from opscope import cli
cli._run = lambda *_: (print(os.getpid(), flush=True), input())
cli.main(["status"])
"""


def test_a_signal_ends_it_also_while_it_starts() -> None:
    """The kernel ignores signals to the first process that it has no handler for."""
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
        pytest.skip("no pid namespace may be made here: unshare(2) is refused")
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*UNSHARE, sys.executable, "-c", STARTING], stdin=pipe, stdout=pipe, text=True
    ) as unshare:
        assert unshare.stdout is not None
        assert unshare.stdout.readline() == "1\n"
        with open(f"/proc/{unshare.pid}/task/{unshare.pid}/children") as file:
            (child,) = file.read().split()
        os.kill(int(child), signal.SIGTERM)
        unshare.communicate("\n")
    assert unshare.returncode == 128 + signal.SIGTERM
