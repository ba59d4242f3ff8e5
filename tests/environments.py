"""Empty virtual environments, into which this environment's pip installs: giving each a pip of its
own takes 2 s of CPU time."""

import sys
import venv
from pathlib import Path

from native.cross.build import run


def new_environment(directory: Path) -> Path:
    """The directory, with the environment."""
    venv.create(directory, symlinks=True)
    return directory


def pip(environment: Path, *arguments: str | Path) -> str:
    """The output of this environment's pip, which acts on that one. Modules are compiled when a
    program imports them: most are not imported."""
    options = ("--no-compile",) if arguments[0] == "install" else ()
    return run(sys.executable, "-m", "pip", "--python", environment, *arguments, *options)
