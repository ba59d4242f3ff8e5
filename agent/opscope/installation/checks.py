"""The checks of `opscope doctor`: each reports its finding, and a remedy if there is a problem.

A check changes nothing. `fails` means that a part of opscope does not work here, `warns` that it
works worse than it could. trial.py tests frameworks.
"""

from __future__ import annotations

import ctypes
import os
import platform
import ssl
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from opscope import __version__, config
from opscope.attachment.interpreter import unsupported_python
from opscope.config import DEFAULT_LISTEN, Config
from opscope.errors import OpscopeError
from opscope.host import ledgers
from opscope.installation import path_file
from opscope.installation.environment import current
from opscope.segments import directories
from opscope.segments.segment import read_header
from opscope.segments.segment_file import SegmentError, opened

FINE, WARNS, FAILS = "ok", "warns", "fails"

# The largest segment of one process, and the space for a host full of them.
_ONE_SEGMENT_BYTES = 16 << 20
_COMFORTABLE_BYTES = 256 << 20
_AGENT_TIMEOUT_S = 5.0
_ANSWER_BYTES = 4096
_SEGMENT_LIMIT = 4096
# <linux/membarrier.h>
_MEMBARRIER = {"x86_64": 324, "aarch64": 283}
_MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3


class Check(NamedTuple):
    name: str
    verdict: str
    """FINE, WARNS or FAILS."""
    found: str
    advice: str = ""
    """The remedy; "" if there is nothing to do."""


def all_of_host() -> Iterator[Check]:
    """Every check except those of frameworks, prerequisites first."""
    yield interpreter()
    try:
        settings = config.load()
    except OpscopeError as error:
        yield Check(
            "settings",
            FAILS,
            str(error),
            "correct that value; until then, opscope attaches to no process",
        )
        return
    yield Check("settings", FINE, "default" if not Path(config.CONFIG_PATH).exists() else "read")
    if mistyped := config.mistyped():
        yield Check(
            "variables", WARNS, ", ".join(mistyped), "a name that is no setting has no effect"
        )
    if not settings.enabled:
        yield Check("switch", WARNS, "off", "OPSCOPE_ENABLED=0 or enabled=false is in force")
    looks: tuple[Callable[[Config], Check], ...] = (directory, space, clock, kernel, start, agent)
    for look in looks:
        yield look(settings)
    yield segments(settings)
    yield refusals(settings)
    yield names(settings)
    yield shares(settings)


def interpreter() -> Check:
    found = f"opscope {__version__}, Python {platform.python_version()}, {platform.machine()}"
    refusal = unsupported_python()
    return Check("version", FAILS if refusal else FINE, f"{found} {refusal}".strip())


def directory(settings: Config) -> Check:
    """Whether this user can write segments to the configured directory."""
    place = settings.directory
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        above = os.path.dirname(place)
        if os.access(above, os.W_OK | os.X_OK):
            return Check("directory", FINE, f"{place}, created when first needed")
        advice = f"make {above} writable for this user, or set OPSCOPE_DIR"
        return Check("directory", FAILS, f"{place} is missing and cannot be created", advice)
    except OSError as error:
        return Check("directory", FAILS, f"{place}: {error.strerror}", "set OPSCOPE_DIR")
    if not stat.S_ISDIR(found.st_mode):
        return Check(
            "directory", FAILS, f"{place} is not a directory", "remove it, or set OPSCOPE_DIR"
        )
    if found.st_uid != os.geteuid():
        advice = "each user needs its own directory: set OPSCOPE_DIR"
        return Check("directory", FAILS, f"{place} belongs to uid {found.st_uid}", advice)
    if found.st_mode & 0o022:
        return Check("directory", FAILS, f"other users can write to {place}", f"chmod 700 {place}")
    if not os.access(place, os.W_OK | os.X_OK):
        return Check("directory", FAILS, f"cannot write to {place}", f"chmod 700 {place}")
    return Check("directory", FINE, f"{place}, mode {stat.S_IMODE(found.st_mode):o}")


def space(settings: Config) -> Check:
    """Space for segments, in bytes and in files."""
    place = settings.directory
    while not os.path.exists(place):
        place = os.path.dirname(place)
    try:
        room = os.statvfs(place)
    except OSError as error:
        return Check("space", FAILS, f"{place}: {error.strerror}", "set OPSCOPE_DIR")
    if room.f_flag & os.ST_RDONLY:
        return Check(
            "space", FAILS, f"{place} is read-only", "mount a tmpfs there, or set OPSCOPE_DIR"
        )
    free = room.f_bavail * room.f_frsize
    found = f"{free >> 20} MiB free for {place}"
    if free < _ONE_SEGMENT_BYTES or (room.f_files and room.f_favail == 0):
        advice = "free some, or enlarge /dev/shm (docker run --shm-size, an emptyDir of Memory)"
        return Check("space", FAILS, found, advice)
    if free < _COMFORTABLE_BYTES:
        advice = "a process takes up to 16 MiB, mostly under 0.5; without space it is not observed"
        return Check("space", WARNS, found, advice)
    return Check("space", FINE, found)


def clock(_: Config) -> Check:
    """Whether the CPU's counter can serve as the clock, and the kernel trusts it too."""
    if platform.machine() != "x86_64":
        return Check("clock", FINE, "the CPU's counter")
    flags = _cpu_flags(Path("/proc/cpuinfo"))
    source = _text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if "nonstop_tsc" not in flags or "constant_tsc" not in flags:
        advice = "times are right, but each range costs more than with an invariant counter"
        return Check(
            "clock",
            WARNS,
            f"the CPU has no invariant counter; the kernel's clock: {source}",
            advice,
        )
    if source not in ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", ""):
        advice = "the kernel distrusts the CPU's counter (see dmesg for why): times may be off"
        return Check("clock", WARNS, f"invariant counter, but the kernel uses {source}", advice)
    return Check("clock", FINE, f"invariant counter, kernel's clock: {source or 'unknown'}")


def kernel(_: Config) -> Check:
    """The Linux features that the recorder uses."""
    release = platform.release()
    missing = []
    if not Path("/proc/self/stat").exists():
        missing.append("/proc is not mounted")
    number = _MEMBARRIER.get(platform.machine())
    has = ctypes.CDLL(None, use_errno=True).syscall(number, 0, 0, 0) if number else 0
    if has < 0 or not has & _MEMBARRIER_PRIVATE_EXPEDITED:
        missing.append("membarrier(2) is missing, or a filter forbids it")
    if missing:
        advice = "opscope works, but a recorded range costs some nanoseconds more"
        if "/proc" in missing[0]:
            return Check(
                "kernel", FAILS, missing[0], "mount it; opscope attaches to no process without it"
            )
        return Check("kernel", WARNS, f"Linux {release}: {missing[0]}", advice)
    return Check("kernel", FINE, f"Linux {release}")


def start(_: Config) -> Check:
    """Whether programs of this environment attach by themselves."""
    if os.environ.get("OPSCOPE_ATTACH") == "1":
        return Check("attach", FINE, "all programs, by OPSCOPE_ATTACH=1 in this environment")
    try:
        package = path_file.read(current().site)
    except OpscopeError as error:
        return Check("attach", FAILS, str(error), "")
    if package is None:
        advice = "`opscope install` attaches to all programs of this environment"
        return Check("attach", WARNS, "only programs started with `opscope run`", advice)
    if not os.path.exists(package):
        advice = "`opscope install` again, or `opscope uninstall`"
        return Check("attach", FAILS, f"installed for {package}, which is gone", advice)
    return Check("attach", FINE, f"installed in {sys.prefix}")


def agent(settings: Config) -> Check:
    """Whether an agent collects the recorded data. Observation needs none, so that none at the
    default address is only a warning."""
    host, port = settings.listen_host, settings.listen_port
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1" if host == "0.0.0.0" else "::1"
    scheme = "https" if settings.tls_cert else "http"
    where = f"[{host}]" if ":" in host else host
    url = f"{scheme}://{where}:{port}/healthz"
    # Checks only that it answers; nothing secret is sent, so its identity does not matter.
    anyone = ssl._create_unverified_context() if settings.tls_cert else None
    try:
        with urlopen(url, timeout=_AGENT_TIMEOUT_S, context=anyone) as answer:
            _, *warnings = answer.read(_ANSWER_BYTES).decode(errors="replace").splitlines()
        found = "; ".join((f"answers at {url}", *(line.partition(" → ")[0] for line in warnings)))
        advice = "; ".join(line.partition(" → ")[2] for line in warnings)
        return Check("agent", WARNS if warnings else FINE, found, advice)
    except HTTPError as error:
        if error.code == 401:
            return Check("agent", FINE, f"answers at {url}, and requires a password")
        return Check("agent", FAILS, f"{url}: HTTP {error.code}", "see the log of `opscope agent`")
    except (URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        advice = "start `opscope agent` (one per host), or set OPSCOPE_LISTEN to its address"
        if (host, port) == DEFAULT_LISTEN and isinstance(reason, ConnectionRefusedError):
            return Check("agent", WARNS, f"{url}: {reason}; nothing is exported", advice)
        return Check("agent", FAILS, f"{url}: {reason}", advice)


def segments(settings: Config) -> Check:
    """Whether processes removed uncollected segments of ended ones to make room for their own."""
    count = discarded = 0
    for place in directories.find(directories.patterns(settings.directory)):
        try:
            with directories.opened(place) as fd:
                for name in islice(os.listdir(fd), _SEGMENT_LIMIT):
                    if name.endswith(".seg") and not name.startswith("."):
                        with suppress(OSError, SegmentError), opened(name, fd) as file:
                            discarded += read_header(file).discarded_count
                            count += 1
        except (OSError, SegmentError):
            continue
    if discarded:
        found = f"{discarded} of ended processes were removed uncounted to free space"
        advice = "run `opscope agent`, which collects them, or enlarge the file system"
        return Check("segments", WARNS, found, advice)
    return Check("segments", FINE, f"{count}, none removed uncounted")


def refusals(settings: Config) -> Check:
    """Recent ledger entries: the reasons of processes that were not observed."""
    wanted = directories.patterns(settings.directory)
    entries = ledgers.read(directories.find_ledgers(directories.find(wanted)))[0]
    bad = [e for e in entries if e.code in ("config", "recorder", "bridge", "error")]
    if not bad:
        found = f"{len(entries)} processes not observed, none because of a fault"
        alone = Counter(e.text for e in entries if e.code == "unsupported-python")
        counts = [f"; {count} of {text}" for text, count in alone.most_common(3)]
        return Check("ledger", FINE, found + "".join(counts))
    last = max(bad, key=lambda entry: entry.utc_seconds)
    when = datetime.fromtimestamp(min(last.utc_seconds, time.time())).isoformat(" ", "seconds")
    found = f"{len(bad)} processes not fully observed, last {when}: {last.text} ({last.code})"
    return Check("ledger", WARNS, found, "`opscope ps` lists those that still run")


def names(settings: Config) -> Check:
    """Whether the users' directories that this user's agent reads belong to these users."""
    taken = [
        f"{path} belongs to uid {owner}"
        for path in directories.find(directories.patterns(settings.directory))
        if directories.is_of_user(path)
        and (owner := directories.owner(path)) is not None
        and directories.user_of(path) != owner
    ]
    if not taken:
        return Check("names", FINE, "each user's directory belongs to that user")
    advice = (
        "processes of that user are not observed: remove it, and install agent/deploy/tmpfiles.conf"
    )
    more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
    return Check("names", WARNS, f"{', '.join(taken[:3])}{more}", advice)


def shares(settings: Config) -> Check:
    """Whether all users' segments fit into the shares of the agent's limits now."""
    from opscope.host.host import Host

    patterns = directories.patterns(settings.directory)
    host = Host(patterns, consume=False, max_series=settings.max_series)
    found = host.collect().own.limited
    # The agent takes series back from who has more than an equal part.
    greedy = {str(user) for user in host.above_part()}
    limited = [one for one in found if one[1] != "series" or one[0] in greedy]
    if not limited:
        return Check("shares", FINE, "all users are within their shares of the agent's limits")
    of_users: dict[str, list[str]] = {}
    for user, resource in sorted(limited):
        of_users.setdefault(user, []).append(resource)
    told = [f"uid {user}: {', '.join(kinds)}" for user, kinds in of_users.items()]
    more = f"; and {len(told) - 3} more users" if len(told) > 3 else ""
    advice = (
        "these users exceed their share, so part of their data is left out; for series, raise "
        "OPSCOPE_MAX_SERIES; else check the contents of their directories"
    )
    return Check("shares", WARNS, "; ".join(told[:3]) + more, advice)


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
