"""Decide whether this process is observed, with the reason, before anything else happens.

attachment/program.py identifies the program; attachment/ledger.py records the reason.
"""

import os
from collections.abc import Iterable, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.config import Config

# Programs that install, build or administer; names exclude a trailing version ("pip3.11"). They are
# short, start often, run as root, or are opscope itself.
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
    """The reason not to observe this program: a code of ledger.CODES and a text; None to observe.

    Name and aliases are as program.identify gives them. `asked` means that the program itself
    called `opscope.attach()`: then the include list and the deny list do not apply.
    """
    if not config.enabled:
        return "disabled", "OPSCOPE_ENABLED=0 or enabled=false"
    if asked:
        # If the program did not ask, entry.py has made these checks already.
        from opscope.attachment import interpreter

        if unsupported := interpreter.unsupported_python():
            return "unsupported-python", unsupported
        if not interpreter.is_main():
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


def other_user() -> bool:
    """Whether this process runs with other rights than its caller (setuid, setgid)."""
    return os.getuid() != os.geteuid() or os.getgid() != os.getegid()


def _denied(names: Iterable[str]) -> str:
    for alias in names:
        # Also the package of a module: "-m pip._internal".
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
