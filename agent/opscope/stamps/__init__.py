"""Add the process's extra files to models that other packages write, where their format has texts.

The setting `stamp` enables it, by the format's name (`OPSCOPE_STAMP=safetensors,onnx`); by default
these files stay as they are. `opscope model show` shows what was added. A text that the program
itself gives takes precedence, and contents that are not UTF-8 are left out, because these formats
hold texts. PyTorch's own formats belong to its bridge (bridges/torch/stamps.py).

A module of this package has the name of the package that writes the format. It declares
`follow(package)`, which replaces the package's functions that write, and `leave(package)`, which
restores them.
"""

import sys
from collections.abc import Callable, Iterable
from importlib import import_module

FORMATS = ("safetensors", "onnx")


def follow(formats: Iterable[str]) -> None:
    """Stamps these formats from now on; their packages are imported."""
    for name in formats:
        import_module(f"{__name__}.{name}").follow(sys.modules[name])


def leave() -> None:
    """Restores all packages."""
    for name in FORMATS:
        own = sys.modules.get(f"{__name__}.{name}")
        if own is not None:
            own.leave(sys.modules[name])


def texts() -> dict[str, str]:
    """The process's extra files for one model, without those that are no texts."""
    from opscope.record import extra_files  # not needed to wait for the packages

    found = {}
    for name, content in extra_files.hook_files().items():
        try:
            found[name] = content.decode()
        except UnicodeDecodeError:
            continue
    return found


def everywhere(package: str, original: object, put: Callable[[object, str], None]) -> None:
    """Calls `put(module, name)` for each name that the package's modules have for a function."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for attribute, value in list(getattr(module, "__dict__", {}).items()):
                if value is original:
                    put(module, attribute)
