"""Bridges of other distributions are found by their metadata and work like opscope's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opscope import bridges
from opscope.attachment.site.sitecustomize import own_frameworks
from opscope.bridges import catalog
from opscope.errors import BridgeError
from opscope.host.host import Host
from opscope.host.snapshot import SeriesKey, Snapshot
from opscope.segments import directories

from .conftest import Bench

FRAMEWORK = """
__version__ = "3.1"

def fit(value):
    return value + 1

def fit_backward(value):
    return value - 1
"""

BRIDGE = """
import sys
from opscope.record.ranges import record_function
from opscope.record.scope import RecordScope

FRAMEWORK = "tiny"
PREFIXES = ("tn",)
PHASES = {"tn::fit_backward": "backward", "tn::": "forward"}
PROBE = ("value = 1", "tiny.fit(value)")

_originals = {}

def attach():
    tiny = sys.modules["tiny"]
    for name in ("fit", "fit_backward"):
        _originals[name] = getattr(tiny, name)
        around = record_function(f"tn::{name}", scope=RecordScope.FUNCTION)
        setattr(tiny, name, around(_originals[name]))

def detach():
    vars(sys.modules["tiny"]).update(_originals)
    _originals.clear()
"""

WORK = """
import tiny
assert tiny.fit(1) == 2 and tiny.fit(2) == 3 and tiny.fit_backward(3) == 2
"""

SHOW = """
import opscope
print(dict(opscope.attach_status().bridges), tiny.fit(1))
"""


class Site:
    """A site-packages with a framework `tiny`, and a distribution that declares a bridge to it."""

    def __init__(self, place: Path) -> None:
        self.place = place / "site-packages"
        self.place.mkdir()
        (self.place / "tiny.py").write_text(FRAMEWORK)
        self.declare("opscope_tiny")
        self.write(BRIDGE)

    def declare(self, distribution: str) -> None:
        info = self.place / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\n")
        group = "[other]\nx = y\n\n[opscope.bridges]\ntiny = opscope_tiny\n"
        (info / "entry_points.txt").write_text(group)

    def write(self, bridge: str) -> None:
        (self.place / "opscope_tiny.py").write_text(bridge)

    def run(self, bench: Bench, program: str, **variables: Any) -> str:
        """The output of an observed program with this on its path."""
        path = str(self.place)
        done = bench.run(
            "-c", program, stub=False, PYTHONPATH=path, OPSCOPE_SAMPLING="1", **variables
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def on_path(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Also in this process."""
    caches = (catalog.known, catalog._names, catalog._prefixes)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.syspath_prepend(str(site.place))
    yield site
    sys.modules.pop("opscope_tiny", None)
    for cache in caches:
        cache.cache_clear()


def recorded(bench: Bench) -> Snapshot:
    return Host(directories.exactly([str(bench.segments)]), consume=False).collect()


def test_its_operators_are_recorded_with_its_prefix_and_phases(bench: Bench, site: Site) -> None:
    site.run(bench, WORK)
    snapshot = recorded(bench)
    samples = zip(snapshot.keys, snapshot.samples.tolist(), strict=True)
    found = {(key.op, key.phase): count for key, count in samples}
    assert found == {("tn::fit", "forward"): 2, ("tn::fit_backward", "backward"): 1}
    [process] = snapshot.processes
    assert process.bridges == {"tiny": "attached"}
    assert process.notes["tiny"] == "3.1"
    alive = replace(snapshot, processes=(process._replace(is_alive=True),))
    assert ("tiny", "3.1") in {
        (framework, version) for _, framework, version, _ in alive.framework_info
    }


def test_its_framework_is_shown_where_it_is_installed(on_path: Site) -> None:
    assert SeriesKey("service", "tn::fit", "forward", ()).framework == "tiny"
    assert SeriesKey("service", "numpy::add", "forward", ()).framework == "numpy"


def test_a_program_attaches_to_it_by_itself(bench: Bench, site: Site) -> None:
    for program in (
        f"import opscope, tiny; opscope.attach(){SHOW}",
        f"import opscope; opscope.attach(); import tiny{SHOW}",
    ):
        done = bench.run(
            "-c",
            program,
            stub=False,
            observed=False,
            PYTHONPATH=str(site.place),
            OPSCOPE_DIR=str(bench.segments),
        )
        assert (done.stdout, done.stderr) == ("{'tiny': 'attached'} 2\n", "")


def test_it_is_switched_off_like_opscopes_own(bench: Bench, site: Site) -> None:
    assert site.run(bench, f"{WORK}{SHOW}", OPSCOPE_BRIDGES="numpy,torch") == "{} 2\n"


@pytest.mark.parametrize(
    ("bridge", "reason"),
    [
        ("raise ImportError('own')", "ImportError('own')"),
        ("def", "SyntaxError"),
        ("import sys; sys.exit(3)", "SystemExit(3)"),
        ("FRAMEWORK = 'other'", "opscope_tiny is a bridge to other"),
        ("pass", "has no attribute"),
        ("FRAMEWORK = 'tiny'", "has no attribute"),
        ("FRAMEWORK = 'tiny'\ndef attach(): 1 / 0", "ZeroDivisionError"),
        ("FRAMEWORK = 'tiny'\nPHASES = {'x': 'y'}\ndef attach(): pass", "a phase must be one of"),
        (
            "from opscope.errors import BridgeError\nFRAMEWORK = 'tiny'\n"
            "def attach(): raise BridgeError('too old')\ndef detach(): 1 / 0",
            "too old",
        ),
    ],
)
def test_a_failing_bridge_is_disabled_with_the_reason(
    bench: Bench, site: Site, bridge: str, reason: str
) -> None:
    site.write(bridge)
    said = site.run(bench, f"{WORK}{SHOW}")
    assert said.endswith(" 2\n")
    assert reason in said
    assert bench.codes() == ["bridge"]
    assert reason in recorded(bench).processes[0].bridges["tiny"]


@pytest.mark.parametrize("text", [b"\xff", b"[opscope.bridges]\ntiny\n = \n[x", b""])
def test_metadata_that_cannot_be_read_declare_nothing(
    bench: Bench, site: Site, text: bytes
) -> None:
    (site.place / "opscope_tiny-1.0.dist-info" / "entry_points.txt").write_bytes(text)
    assert site.run(bench, f"{WORK}{SHOW}") == "{} 2\n"


def test_distributions_of_other_names_are_not_read(bench: Bench, site: Site) -> None:
    (site.place / "opscope_tiny-1.0.dist-info").rename(site.place / "tiny_opscope-1.0.dist-info")
    assert site.run(bench, f"{WORK}{SHOW}") == "{} 2\n"


def test_another_distribution_does_not_take_the_place_of_opscopes_own(on_path: Site) -> None:
    info = on_path.place / "opscope_tiny-1.0.dist-info"
    (info / "entry_points.txt").write_text("[opscope.bridges]\nnumpy = opscope_tiny\n")
    assert bridges.modules()["numpy"] == "opscope.bridges.numpy"
    assert bridges.load("numpy").__name__ == "opscope.bridges.numpy"


def test_an_undeclared_framework_has_no_bridge() -> None:
    with pytest.raises(BridgeError, match="there is no bridge to tiny"):
        bridges.load("tiny")


def test_each_package_of_bridges_is_one_and_says_so() -> None:
    own = {name for name, module in bridges.modules().items() if module.startswith("opscope.")}
    assert own == set(own_frameworks()) >= {"numpy", "torch"}
    for framework in own:
        assert framework == bridges.load(framework).FRAMEWORK
    declared = {bridge.framework: bridge for bridge in catalog.known()}
    # A probe runs in observed programs too, and theirs would change a program, or take long.
    without = {"jax", "numba", "numexpr", "nvtx", "onnxruntime"}
    assert {framework for framework in own if declared[framework].probe is None} == without


def test_no_other_file_names_the_frameworks() -> None:
    package = Path(bridges.__file__).parent.parent
    wrong = [
        f"{path.relative_to(package)}: {word}"
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] not in ("bridges", "bench", "tensor")
        for word in ('"numpy"', '"torch"', '"aten"')
        if word in path.read_text()
    ]
    assert wrong == []
