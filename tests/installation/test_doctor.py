"""`opscope doctor` finds each possible fault, and says how to fix it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from urllib.error import URLError

import pytest

from opscope.attachment import ledger
from opscope.attachment.interpreter import FREE_THREADED
from opscope.bridges import catalog
from opscope.bridges.catalog import Bridge
from opscope.config import Config, load
from opscope.installation import checks, trial
from opscope.installation.checks import FAILS, FINE, WARNS, Check
from opscope.server.access import Certificate
from tests.attachment.test_outside_bridges import BRIDGE, Site
from tests.e2e.observed_host import observed_host
from tests.installation.conftest import opscope
from tests.segments.segment_writer import Process, SegmentWriter
from tests.server.test_access import make_certificate, serving


def settings(place: Path | str, **environ: str) -> Config:
    return load({"OPSCOPE_DIR": str(place), **environ}, "/none")


def test_all_is_well_beside_an_agent(tmp_path: Path) -> None:
    with observed_host(tmp_path / "segments") as host:
        listen = host.url.removeprefix("http://")
        environ = {"OPSCOPE_DIR": str(tmp_path / "segments"), "OPSCOPE_LISTEN": listen}
        done = opscope("doctor", "--json", OPSCOPE_BRIDGES="numpy", **environ)
    said = json.loads(done.stdout)
    found = {check["name"]: check for check in said["checks"]}
    assert (done.returncode, said["ok"], done.stderr) == (0, True, "")
    assert found.keys() >= {"version", "directory", "space", "clock", "kernel", "agent", "ledger"}
    assert found["numpy"]["verdict"] == FINE
    assert "calls recorded and read back" in found["numpy"]["found"]
    assert found["torch"]["verdict"] != FAILS
    assert os.listdir(tmp_path) in (["segments"], [])  # the trial leaves nothing


def test_without_an_agent_it_fails_with_a_remedy(tmp_path: Path) -> None:
    # No process listens on port 1.
    environ = {"OPSCOPE_LISTEN": "127.0.0.1:1", "OPSCOPE_BRIDGES": "none"}
    done = opscope("doctor", OPSCOPE_DIR=str(tmp_path), COLUMNS="200", **environ)
    assert done.returncode == 1
    assert "Connection refused" in done.stdout
    assert "→ start `opscope agent` (one per host)" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_without_an_agent_that_anyone_asked_for_it_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`opscope run`, `top` and `trace` need none."""

    def refuse(*_: object, **__: object) -> None:
        raise URLError(ConnectionRefusedError(111, "Connection refused"))

    monkeypatch.setattr(checks, "urlopen", refuse)
    check = checks.agent(settings(tmp_path))
    assert check.verdict == WARNS
    assert "Connection refused" in check.found and "nothing is exported" in check.found
    assert "start `opscope agent`" in check.advice
    assert checks.agent(settings(tmp_path, OPSCOPE_LISTEN="127.0.0.1:9465")).verdict == FAILS


def test_an_agent_with_tls_is_found(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    server = serving(tmp_path, certificate=Certificate(*certificate))
    host, port = server.address
    cert, key = certificate
    said = settings(
        tmp_path, OPSCOPE_LISTEN=f"{host}:{port}", OPSCOPE_TLS_CERT=cert, OPSCOPE_TLS_KEY=key
    )
    assert checks.agent(said)[1:3] == (FINE, f"answers at https://{host}:{port}/healthz")
    server.close()


def test_an_invalid_setting_is_reported_first(tmp_path: Path) -> None:
    done = opscope("doctor", "--json", OPSCOPE_SAMPLING="2")
    last = json.loads(done.stdout)["checks"][-1]
    assert (done.returncode, last["name"], last["verdict"]) == (1, "settings", FAILS)
    assert "OPSCOPE_SAMPLING='2'" in last["found"]


def spoiled(place: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "file":
        place.touch()
    elif how == "link":
        place.symlink_to("/tmp")
    else:
        place.mkdir(mode=0o700)
    if how == "writable":
        place.chmod(0o777)
    if how == "owner":
        owner = place.stat().st_uid
        monkeypatch.setattr("os.geteuid", lambda: owner + 1)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("file", "is not a directory"),
        ("link", "is not a directory"),
        ("writable", "other users can write to"),
        ("owner", "belongs to uid"),
    ],
)
def test_a_directory_that_attaching_would_not_take_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, words: str
) -> None:
    place = tmp_path / "segments"
    spoiled(place, how, monkeypatch)
    check = checks.directory(settings(place))
    assert check.verdict == FAILS
    assert words in check.found
    assert check.advice


def test_a_directory_that_is_or_can_be_is_fine(tmp_path: Path) -> None:
    missing = checks.directory(settings(tmp_path / "new"))
    assert (missing.verdict, "created when first needed" in missing.found) == (FINE, True)
    assert not (tmp_path / "new").exists()
    tmp_path.chmod(0o700)
    assert checks.directory(settings(tmp_path)).verdict == FINE
    assert checks.directory(settings("/proc/none/segments")).verdict == FAILS


@pytest.mark.parametrize(
    ("free_mib", "files", "flags", "verdict"),
    [
        (1000, 10, 0, FINE),
        (1000, 0, 0, FAILS),
        (100, 10, 0, WARNS),
        (15, 10, 0, FAILS),
        (1000, 10, os.ST_RDONLY, FAILS),
    ],
)
def test_space_is_judged_by_the_size_of_segments(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    free_mib: int,
    files: int,
    flags: int,
    verdict: str,
) -> None:
    room = SimpleNamespace(
        f_bavail=free_mib << 8, f_frsize=4096, f_files=100, f_favail=files, f_flag=flags
    )
    monkeypatch.setattr("os.statvfs", lambda path: room)
    check = checks.space(settings(tmp_path / "not" / "yet"))
    assert check.verdict == verdict
    assert bool(check.advice) == (verdict != FINE)


@pytest.mark.parametrize(
    ("flags", "source", "verdict", "words"),
    [
        ("fpu constant_tsc nonstop_tsc", "tsc", FINE, "invariant counter"),
        ("fpu constant_tsc nonstop_tsc", "kvm-clock", FINE, "invariant counter"),
        ("fpu constant_tsc nonstop_tsc", "hpet", WARNS, "the kernel uses hpet"),
        ("fpu tsc", "acpi_pm", WARNS, "no invariant counter"),
    ],
)
def test_the_clock_is_judged_as_the_kernel_does(
    monkeypatch: pytest.MonkeyPatch, flags: str, source: str, verdict: str, words: str
) -> None:
    texts = {"/proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n"}
    monkeypatch.setattr(checks, "_text", lambda path: texts.get(path, source))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    check = checks.clock(settings("/none"))
    assert (check.verdict, words in check.found) == (verdict, True)


def test_a_kernel_without_membarrier_works_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checks.kernel(settings("/none")).verdict == FINE
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    check = checks.kernel(settings("/none"))
    assert (check.verdict, "membarrier" in check.found) == (WARNS, True)


def test_the_kill_switch_is_reported() -> None:
    done = opscope("doctor", "--json", OPSCOPE_ENABLED="0", OPSCOPE_BRIDGES="none")
    found = {check["name"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert found["switch"] == WARNS


def test_problems_of_processes_are_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    config = settings(tmp_path)
    ledger.write(config, "denied", "pip: deny list")
    assert checks.refusals(config).verdict == FINE
    ledger.write(config, "unsupported-python", FREE_THREADED)
    check = checks.refusals(config)
    assert (check.verdict, check.found.endswith(f"; 1 of {FREE_THREADED}")) == (FINE, True)
    ledger.write(config, "recorder", "no space")
    check = checks.refusals(config)
    assert check.verdict == WARNS
    assert check.found.endswith(": no space (recorder)")


def test_segments_removed_uncounted_are_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    config = settings(tmp_path)
    SegmentWriter().write(tmp_path)
    (tmp_path / "1-1-0000000000000001.seg").write_bytes(b"no segment")
    assert checks.segments(config).verdict == FINE
    for random, count in ((b"a", 3), (b"b", 4)):
        SegmentWriter(Process(random_id=random * 16), discarded_count=count).write(tmp_path)
    check = checks.segments(config)
    assert check.verdict == WARNS
    assert check.found.startswith("7 of ended processes")


def test_a_framework_of_unknown_version_works_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The child, which is tried, finds another numpy; this process keeps its own.
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text(
        "__version__ = '99.0'\nadd = ones = lambda *a: 0\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OPSCOPE_BRIDGES", "numpy")
    (tmp_path / "shm").mkdir()
    monkeypatch.setenv("OPSCOPE_DIR", str(tmp_path / "shm" / "segments"))
    checks = dict(zip([one.framework for one in catalog.known()], trial.frameworks(), strict=True))
    numpy, torch = checks["numpy"], checks["torch"]
    assert numpy.verdict == WARNS
    assert "numpy 99.0 is not a supported version" in numpy.found
    assert isinstance(torch, Check)
    assert os.listdir(tmp_path / "shm") == []


def test_a_framework_that_its_bridges_settings_exclude_is_not_said_to_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '2.99.0'\nempty = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OPSCOPE_TORCH_VERSIONS", "tried")
    (bridge,) = (bridge for bridge in catalog.known() if bridge.framework == "torch")
    check = trial._try(bridge, str(tmp_path / "segments"))
    assert check.verdict == WARNS
    assert "2.99.0: not a tried version, as torch_versions demands" in check.found


def test_parts_of_a_bridge_that_do_not_work_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(tmp_path)
    own_prefix = BRIDGE.replace("tn::", "tiny::")
    site.write(f"{own_prefix}\ndef facts():\n    return {{'tiny.without': 'shapes (a reason)'}}\n")
    monkeypatch.setenv("PYTHONPATH", str(site.place))
    bridge = Bridge("tiny", ("tiny",), None, False, ("value = 1", "tiny.fit(value)"), "tiny")
    check = trial._try(bridge, str(tmp_path / "segments"))
    assert (check.verdict, check.found) == (
        WARNS,
        "tiny of unknown version: attached, without shapes (a reason)",
    )


def test_problems_of_an_agent_are_reported(tmp_path: Path) -> None:
    server = serving(tmp_path, warnings=lambda: ["the state is lost → free room", "b → wait"])
    host, port = server.address
    url = f"http://{host}:{port}/healthz"
    check = checks.agent(settings(tmp_path, OPSCOPE_LISTEN=f"{host}:{port}"))
    server.close()
    assert check[1:] == (WARNS, f"answers at {url}; the state is lost; b", "free room; wait")
