"""Bridges make another framework's operators visible as ranges, one package for each framework.

A bridge is a module that declares:

- `FRAMEWORK`: the framework's top-level module; the bridge waits for its import;
- `PREFIXES`: the prefixes before `::` in the names of its operators; default: FRAMEWORK;
- `NAMES`: a regular expression that matches the start of its operators' names without prefix;
- `FOREIGN_PREFIXES`: whether it also sees operators that other packages name;
- `PHASES`: the phase of `record_function` ranges by prefixes of their names;
- `LATE_MODULES`: modules of the framework after whose import the session attaches once more;
- `PROBE`: two Python statements, one that prepares (the framework's module is in scope), and one
  that runs a small operator: for `opscope doctor`, and to measure the cost of a range;
- `attach()`: makes operators visible. It raises BridgeError with the reason if it cannot. It never
  imports its framework, but uses the module that the program has imported;
- `detach()`: restores the framework, also after an `attach()` that failed halfway;
- `facts()`: notes on the process, by key;
- `configure(config)`: called before the others, with the settings of the process;
- `arriving()`: called when the framework's module exists but has not run;
- `apply(config)`: called after attaching, for settings beyond ranges.

FRAMEWORK, `attach` and `detach` are required. Opscope's own bridges are the packages in this one,
and the modules of the guests.
Another distribution adds a bridge by an entry point of the group `opscope.bridges`. For example,
`pyproject.toml` of a distribution `opscope-tiny` declares one for a framework `tiny`:

    [project.entry-points."opscope.bridges"]
    tiny = "opscope_tiny"

declared.py defines which distributions are searched. If a bridge cannot be imported, or raises,
`opscope ps` shows the reason; the program continues without it.
"""

import os
import sys
from contextlib import suppress
from importlib import import_module

from opscope.errors import BridgeError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opscope.config import Config

GUESTS = {"blas": "numpy", "itt": ""}
"""Bridges to libraries that no import announces, each with the framework that must be imported.
They attach after it, and again after each further framework and each of their `LATE_MODULES`; those
without one attach as the session begins. They are modules, not packages: the names of these are
waited for (site/sitecustomize.py)."""


def modules() -> dict[str, str]:
    """The module of each bridge, by framework: opscope's own, and those found on sys.path."""
    from opscope.bridges.declared import bridges_on  # not needed for opscope's own

    found = bridges_on(sys.path, set())
    with os.scandir(os.path.dirname(__file__)) as entries:
        own = [entry.name for entry in entries if entry.is_dir() and entry.name[0] != "_"]
    return found | {name: f"{__name__}.{name}" for name in sorted(own)}


def load(framework: str) -> "Any":
    """The bridge to that framework.

    Raises BridgeError if there is no bridge, or if the module is a bridge to another framework;
    otherwise any exception of its import.
    """
    if framework in _loaded:
        return _loaded[framework]
    own = os.path.join(os.path.dirname(__file__), framework)
    is_own = framework in GUESTS or os.path.isdir(own)
    module = f"{__name__}.{framework}" if is_own else modules().get(framework)
    if module is None:
        raise BridgeError(f"there is no bridge to {framework}")
    bridge = import_module(module)
    if framework != bridge.FRAMEWORK:
        raise BridgeError(f"{module} is a bridge to {bridge.FRAMEWORK}")
    if phases := getattr(bridge, "PHASES", None):
        from opscope.record.ranges import name_phases

        name_phases(phases)
    if is_own:
        _loaded[framework] = bridge
    return bridge


_loaded: "dict[str, Any]" = {}
"""Opscope's own bridges; a session asks for one at each module of the framework that arrives."""


def configured(framework: str, config: "Config | None") -> "Any":
    """The same, with the settings of the process."""
    bridge = load(framework)
    if config is not None and hasattr(bridge, "configure"):
        bridge.configure(config)
    return bridge


def take_off(framework: str) -> None:
    """Detaches the bridge to it and ignores its exceptions."""
    with suppress(Exception, SystemExit):
        load(framework).detach()
