"""The systemd-tmpfiles entry with which root prepares the directory for all users' segments.

`opscope install --system` writes it if the host has systemd-tmpfiles, and creates the directory at
once; `opscope uninstall --system` removes both. agent/deploy/tmpfiles.conf is the same entry for
manual installation; tmpfiles.d(5) has the format.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from opscope import config
from opscope.errors import OpscopeError
from opscope.replace_file import remove_remains, replace_file

PATH = "/etc/tmpfiles.d/opscope.conf"

_PROGRAM = "systemd-tmpfiles"
_TIMEOUT_S = 60.0


def text() -> str:
    """The file's content."""
    return (
        "# Written by `opscope install --system`, removed by `opscope uninstall --system`.\n"
        f"d {config.RUNTIME_DIRECTORY} 1777 root root -\n"
    )


def put() -> str:
    """Writes the entry and creates the directory; returns a description of the changes, or "".

    Does nothing without systemd-tmpfiles, or if a file of that name exists. Raises OpscopeError on
    failure, and then leaves nothing behind.
    """
    program = shutil.which(_PROGRAM)
    if program is None or os.path.lexists(PATH):
        return ""
    remove_remains(PATH)
    try:
        os.makedirs(os.path.dirname(PATH), mode=0o755, exist_ok=True)
        replace_file(PATH, text().encode("ascii"), mode=0o644, durable=True)
    except OSError as error:
        raise OpscopeError(f"cannot write {PATH}: {error.strerror}") from error
    command = [program, "--create", PATH]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        take()
        said = str(getattr(error, "stderr", None) or error).strip()
        raise OpscopeError(f"{' '.join(command)}: {said}") from error
    return f"{PATH}: written; segments of all users go to {config.RUNTIME_DIRECTORY}"


def take() -> str:
    """Removes the entry, and the directory if it is empty; returns a description, or "".

    Keeps a file that put() did not write. Raises OpscopeError if the file cannot be removed.
    """
    remove_remains(PATH)
    try:
        if Path(PATH).read_bytes() != text().encode("ascii"):
            return ""
        os.unlink(PATH)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise OpscopeError(f"cannot remove {PATH}: {error.strerror}") from error
    # Segments in it belong to running programs, or wait for the agent.
    with suppress(OSError):
        os.rmdir(config.RUNTIME_DIRECTORY)
    return f"{PATH}: removed"
