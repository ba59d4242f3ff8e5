"""Separate programs for tests that cannot run in their own process."""

import subprocess
import sys


def run_python(
    code: str, env: dict[str, str] | None = None, *options: str
) -> subprocess.CompletedProcess[str]:
    """Runs `code` in a new interpreter until it ends, and returns the result."""
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=env,
    )


def output_of(code: str, env: dict[str, str] | None = None, *options: str) -> list[str]:
    """The lines that a program printed; it must end with status 0 and nothing on standard error."""
    done = run_python(code, env, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()
