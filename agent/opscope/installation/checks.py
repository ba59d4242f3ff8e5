"""What ``opscope doctor`` looks at: each check says what it found, and what to do if that is bad.

A check looks and does not mend. `fails` means that something of opscope does not work here, `warns`
that it works worse than it could. Trying out a framework is trial.py's.
"""

from __future__ import annotations

import ctypes
import os
import platform
import ssl
import stat
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from opscope import __version__, config
from opscope.agent import directories
from opscope.attachment import ledger, policy
from opscope.config import Config
from opscope.errors import OpscopeError
from opscope.installation import path_file
from opscope.installation.environment import current

FINE, WARNS, FAILS = "ok", "warns", "fails"

# One process's segment at its largest, and what a full host of them may want.
_ONE_SEGMENT_BYTES = 16 << 20
_COMFORTABLE_BYTES = 256 << 20
_AGENT_TIMEOUT_S = 5.0
# <linux/membarrier.h>
_MEMBARRIER = {"x86_64": 324, "aarch64": 283}
_MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3


class Check(NamedTuple):
    name: str
    verdict: str
    """FINE, WARNS or FAILS."""
    found: str
    advice: str = ""
    """What to do; "" where nothing is to be done."""


def all_of_host() -> Iterator[Check]:
    """Every check but those of frameworks, in the order in which one thing needs another."""
    yield interpreter()
    try:
        settings = config.load()
    except OpscopeError as error:
        yield Check(
            "settings", FAILS, str(error), "correct that value; until then nothing attaches"
        )
        return
    yield Check("settings", FINE, "default" if not Path(config.CONFIG_PATH).exists() else "read")
    if not settings.enabled:
        yield Check("switch", WARNS, "off", "OPSCOPE_ENABLED=0 or enabled=false is in force")
    looks: tuple[Callable[[Config], Check], ...] = (directory, space, clock, kernel, start, agent)
    for look in looks:
        yield look(settings)
    yield refusals(settings)


def interpreter() -> Check:
    found = f"opscope {__version__}, Python {platform.python_version()}, {platform.machine()}"
    refusal = policy.unsupported_python()
    return Check("version", FAILS if refusal else FINE, f"{found} {refusal}".strip())


def directory(settings: Config) -> Check:
    """Whether this user can leave segments where they belong."""
    place = settings.directory
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        above = os.path.dirname(place)
        if os.access(above, os.W_OK | os.X_OK):
            return Check("directory", FINE, f"{place}, made when first needed")
        advice = f"make {above} writable for this user, or set OPSCOPE_DIR"
        return Check("directory", FAILS, f"{place} is missing and cannot be made", advice)
    except OSError as error:
        return Check("directory", FAILS, f"{place}: {error.strerror}", "set OPSCOPE_DIR")
    if not stat.S_ISDIR(found.st_mode):
        return Check(
            "directory", FAILS, f"{place} is no directory", "remove it, or set OPSCOPE_DIR"
        )
    if found.st_uid != os.geteuid():
        advice = "each user needs a directory of its own: set OPSCOPE_DIR"
        return Check("directory", FAILS, f"{place} belongs to uid {found.st_uid}", advice)
    if found.st_mode & 0o022:
        return Check("directory", FAILS, f"{place} can be written by others", f"chmod 700 {place}")
    if not os.access(place, os.W_OK | os.X_OK):
        return Check("directory", FAILS, f"{place} cannot be written", f"chmod 700 {place}")
    return Check("directory", FINE, f"{place}, mode {stat.S_IMODE(found.st_mode):o}")


def space(settings: Config) -> Check:
    """Room for segments, in bytes and in files."""
    place = settings.directory
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        room = os.statvfs(place)
    except OSError as error:
        return Check("space", FAILS, f"{place}: {error.strerror}", "set OPSCOPE_DIR")
    if room.f_flag & os.ST_RDONLY:
        return Check("space", FAILS, f"{place} is read-only", "mount a tmpfs there, or OPSCOPE_DIR")
    free = room.f_bavail * room.f_frsize
    found = f"{free >> 20} MiB free for {place}"
    if free < _ONE_SEGMENT_BYTES or (room.f_files and room.f_favail == 0):
        advice = "free some, or give /dev/shm more (docker run --shm-size, an emptyDir of Memory)"
        return Check("space", FAILS, found, advice)
    if free < _COMFORTABLE_BYTES:
        advice = "a process takes up to 16 MiB, mostly under 0.5; without room it goes unobserved"
        return Check("space", WARNS, found, advice)
    return Check("space", FINE, found)


def clock(_: Config) -> Check:
    """Whether time can be read from the CPU's counter, and the kernel trusts it too."""
    if platform.machine() != "x86_64":
        return Check("clock", FINE, "the CPU's counter")
    flags = _cpu_flags(Path("/proc/cpuinfo"))
    source = _text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if "nonstop_tsc" not in flags or "constant_tsc" not in flags:
        advice = "times are right, but each range costs more; a host or VM type with it costs less"
        return Check("clock", WARNS, f"no invariant counter, kernel's clock: {source}", advice)
    if source not in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", ""):
        advice = "the kernel distrusts the CPU's counter (see dmesg for why): times may be off"
        return Check("clock", WARNS, f"invariant counter, but the kernel uses {source}", advice)
    return Check("clock", FINE, f"invariant counter, kernel's clock: {source or 'unknown'}")


def kernel(_: Config) -> Check:
    """What the recorder uses of Linux."""
    release = platform.release()
    missing = []
    if not Path("/proc/self/stat").exists():
        missing.append("/proc is not mounted")
    number = _MEMBARRIER.get(platform.machine())
    has = ctypes.CDLL(None, use_errno=True).syscall(number, 0, 0, 0) if number else 0
    if has < 0 or not has & _MEMBARRIER_PRIVATE_EXPEDITED:
        missing.append("no membarrier(2), or a filter forbids it")
    if missing:
        advice = "opscope works, but a recorded range costs some nanoseconds more"
        if "/proc" in missing[0]:
            return Check("kernel", FAILS, missing[0], "mount it; nothing attaches without")
        return Check("kernel", WARNS, f"Linux {release}: {missing[0]}", advice)
    return Check("kernel", FINE, f"Linux {release}")


def start(_: Config) -> Check:
    """Whether programs of this environment attach by themselves."""
    if os.environ.get("OPSCOPE_ATTACH") == "1":
        return Check("attach", FINE, "by OPSCOPE_ATTACH=1 in this environment")
    try:
        package = path_file.read(current().site)
    except OpscopeError as error:
        return Check("attach", FAILS, str(error), "")
    if package is None:
        advice = "`opscope install` for all programs of this environment, `opscope run` for one"
        return Check("attach", WARNS, "only those started with `opscope run`", advice)
    if not os.path.exists(package):
        advice = "`opscope install` again, or `opscope uninstall`"
        return Check("attach", FAILS, f"installed for {package}, which is gone", advice)
    return Check("attach", FINE, f"installed in {sys.prefix}")


def agent(settings: Config) -> Check:
    """Whether somebody takes in what is recorded."""
    host, port = settings.listen_host, settings.listen_port
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    scheme = "https" if settings.tls_cert else "http"
    where = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{where}:{port}/healthz"
    # Whether it answers is asked, not who it is: nothing secret goes there.
    anyone = ssl._create_unverified_context() if settings.tls_cert else None
    try:
        with urlopen(url, timeout=_AGENT_TIMEOUT_S, context=anyone):
            return Check("agent", FINE, f"answers at {url}")
    except HTTPError as error:
        if error.code == 401:
            return Check("agent", FINE, f"answers at {url}, and asks for a login")
        return Check("agent", FAILS, f"{url}: HTTP {error.code}", "see what `opscope agent` says")
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        advice = "start `opscope agent` (one a host), or set OPSCOPE_LISTEN to where it is"
        return Check("agent", FAILS, f"{url}: {reason}", advice)


def refusals(settings: Config) -> Check:
    """What processes of late have written down as their reason for going unobserved."""
    wanted = directories.patterns(settings.directory)
    entries = ledger.read_all(directories.find_ledgers(wanted))
    bad = [e for e in entries if e.code in ("config", "recorder", "bridge", "error")]
    if not bad:
        return Check("ledger", FINE, f"{len(entries)} processes unobserved, none by a fault")
    last = max(bad, key=lambda entry: entry.utc_seconds)
    when = datetime.fromtimestamp(min(last.utc_seconds, time.time())).isoformat(" ", "seconds")
    found = f"{len(bad)} processes not wholly observed, last {when}: {last.text} ({last.code})"
    return Check("ledger", WARNS, found, "`opscope ps` lists those that still run")


def _cpu_flags(path: Path) -> set[str]:
    for line in _text(str(path)).splitlines():
        if line.startswith("flags"):
            return set(line.split())
    return set()


def _text(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
