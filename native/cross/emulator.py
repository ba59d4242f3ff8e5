"""Programs for aarch64 on x86-64, in QEMU's user mode, as if this machine ran them.

The kernel starts QEMU for each such program, also for those that programs start themselves: that is
registered in a user namespace, of which the rest of the machine knows nothing. Needs Linux 6.7, and
not root.
"""

import subprocess
from pathlib import Path

from native.cross import debian
from native.cross.targets import BUILD

# The head of an ELF file for aarch64: which bytes of it count, and what they are. The kernel reads
# the escapes.
_BYTES = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
_REGISTER = """
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
printf %s "$0" > /proc/sys/fs/binfmt_misc/register &&
exec "$@"
"""


def qemu() -> Path:
    """QEMU 7.2. Beside other load, a forked child's first thread sometimes runs wrong code in it.

    Seen in cores of tests/bridges/test_torch_processes.py, which then fail with SIGSEGV: registers
    and stack of a call of clock_gettime, in a function of Python's that the thread never calls.
    QEMU 10.0 does not do that, but Python takes 1.7 times as long in it.
    """
    root = debian.unpack(["qemu-user-static"], "bookworm", BUILD / "qemu")
    return root / "usr/bin/qemu-aarch64-static"


def prefix() -> list[str]:
    """The words before a command, with which it starts programs for aarch64 too.

    Raises UnavailableError.
    """
    # F: opened now, so it is found whatever a program takes for the root.
    rule = f":qemu-aarch64:M::{_BYTES}:{_MASK}:{qemu()}:F"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _REGISTER, rule]
    try:
        done = subprocess.run([*command, "true"], capture_output=True, text=True)
    except FileNotFoundError as error:
        raise debian.UnavailableError(f"{error.filename} is not there") from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:]
        raise debian.UnavailableError(f"no emulator in a user namespace (Linux 6.7): {said}")
    return command
