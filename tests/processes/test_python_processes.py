"""What is shown of processes that are not observed."""

import subprocess
import sys
from pathlib import Path

from opscope.processes import python_processes


def test_the_name_of_a_program_commands_no_terminal(tmp_path: Path) -> None:
    """`opscope ps` shows root the names that other users gave their files."""
    program = tmp_path / "pro\x1b]0;owned\x07gram.py"
    program.write_text("print(flush=True); input()")
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = python_processes.look_up(process.pid, any_executable=False)
        process.communicate(b"\n")
    assert found is not None
    assert found.program == "pro?]0;owned?gram.py"
