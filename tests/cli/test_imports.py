"""What the command line imports before it has anything to do: a shell completes at each Tab.

NumPy alone takes three times as long to import as all that a help text needs.
"""

import os
import subprocess
import sys
from pathlib import Path

from opscope.cli import _commands

OPSCOPE = Path(sys.executable).parent / "opscope"
# NumPy, what needs it, and what else takes long.
HEAVY = (
    "numpy",
    "opscope.host.host",
    "opscope.host.snapshot",
    "opscope.models",
    "opscope.segments.layout",
    "opscope.server.http_server",
    "opscope.tensor",
    "urllib.request",
)


def imported(*arguments: str, **variables: str) -> tuple[set[str], str]:
    """The modules that the program `opscope` imports, and what it prints."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(OPSCOPE), *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}, done.stdout


def heavy(modules: set[str]) -> set[str]:
    return modules.intersection(HEAVY)


def test_the_list_of_commands_imports_nothing_heavy() -> None:
    modules, said = imported("--help")
    assert all(name in said for name in _commands.names())
    assert "opscope.cli._group" in modules and heavy(modules) == set()


def test_completion_imports_nothing_heavy() -> None:
    modules, said = imported(
        _OPSCOPE_COMPLETE="bash_complete", COMP_WORDS="opscope top --on", COMP_CWORD="2"
    )
    assert said == "plain,--once\n"
    assert "opscope.cli._top_state" in modules and heavy(modules) == set()


def test_help_of_no_command_imports_anything_heavy() -> None:
    """All of them in one process."""
    program = """
import contextlib, io, sys
from opscope.cli import _commands, main

for name in _commands.names():
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        main([name, "--help"])
    assert said.getvalue().startswith("Usage:"), said.getvalue()
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )
    modules = {*done.stdout.split()}
    assert "opscope.cli.ps" in modules and heavy(modules) == set()
