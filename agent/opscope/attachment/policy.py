"""Whether this process is to be observed: the decision, with its reason, before anything is done.

Not here: finding out what the process is called (attachment/program.py), or writing the reason down
(attachment/ledger.py).
"""

import os
import sys
from collections.abc import Iterable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.config import Config

# Programs that install, build or administer; a trailing version ("pip3.11") is not part of a name.
# They are short, start often, run as root, or are opscope itself.
DENIED = frozenset(
    """
    pip pipx uv uvx poetry pdm hatch conda mamba micromamba virtualenv venv ensurepip
    setup twine wheel flit _in_process easy_install tox nox
    py_compile compileall pycompile pyclean py3compile py3clean dh_python
    cython cythonize f2py meson ninja scons cmake conan ccache gcc g++ cc c++ clang swig
    apt apt-get add-apt-repository apt-add-repository apt-listchanges apt-check aptd
    unattended-upgrade unattended-upgrades update-manager software-properties-gtk
    command-not-found debconf dpkg lsb_release reportbug needrestart networkd-dispatcher
    dnf yum ansible cloud-init supervisord gdb
    opscope
    """.split()
)


def refusal(
    config: "Config", name: str, aliases: Sequence[str], *, asked: bool
) -> tuple[str, str] | None:
    """Why not to observe this program: a code of ledger.CODES and a text; None to observe it.

    Name and aliases are as program.identify gives them. `asked` means that the program itself
    called `opscope.attach()`: it has then no need to be on the include list, nor to be saved by
    the deny list.
    """
    if not config.enabled:
        return "disabled", "OPSCOPE_ENABLED=0 or enabled=false"
    unsupported = unsupported_python()
    if unsupported:
        return "unsupported-python", unsupported
    if asked and not _is_main_interpreter():
        return "subinterpreter", "attach() called in a subinterpreter"
    names = (name, *aliases)
    if pattern := _matching(config.exclude, names):
        return "denied", f"{name}: exclude {pattern}"
    if asked or config.force:
        return None
    if denied := _denied(aliases):
        return "denied", f"{denied}: deny list"
    if config.include and not _matching(config.include, names):
        return "not-included", name
    return None


def _is_main_interpreter() -> bool:
    # Who is not asked for has come by way of that file, and been looked at there.
    from opscope.attachment.entry import is_main_interpreter

    return is_main_interpreter()


def other_user() -> bool:
    """Whether this process runs with rights that are not its caller's (setuid, setgid)."""
    return os.getuid() != os.geteuid() or os.getgid() != os.getegid()


def unsupported_python() -> str:
    """What this interpreter is, if it is not one that opscope knows; else ""."""
    if sys.implementation.name != "cpython":
        return sys.implementation.name
    if sys.version_info < (3, 10):
        return "Python older than 3.10"
    if "t" in sys.abiflags:
        return "free-threaded"
    return ""


def _denied(names: Iterable[str]) -> str:
    for alias in names:
        # The package of a module too: "-m pip._internal".
        for name in (alias, alias.partition(".")[0]):
            if name in DENIED or name.rstrip("0123456789.-") in DENIED:
                return name
    return ""


def _matching(patterns: Sequence[str], names: Sequence[str]) -> str:
    if not patterns:
        return ""
    from fnmatch import fnmatchcase

    for pattern in patterns:
        if any(fnmatchcase(name, pattern) for name in names):
            return pattern
    return ""
