"""Programs of their own for what a test cannot do to its own process."""

import subprocess
import sys


def run_python(
    code: str, env: dict[str, str] | None = None, *options: str
) -> subprocess.CompletedProcess[str]:
    """Runs ``code`` in a new interpreter to its end, whatever that is."""
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=env,
    )


def output_of(code: str, env: dict[str, str] | None = None, *options: str) -> list[str]:
    """The lines a program printed, which ended well and with nothing on standard error."""
    done = run_python(code, env, *options)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()
