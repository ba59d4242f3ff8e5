"""Programs of later Debians than the running one, unpacked for tests, not installed.

The versions are fixed here; native/cross/debian.py says where they come from.
"""

from pathlib import Path

from native.cross import debian
from native.cross.debian import UnavailableError

__all__ = ["VERSIONS", "UnavailableError", "program"]

VERSIONS = {
    "trixie": {
        "prometheus": "2.53.3+ds1-2",
        "promtool": "2.53.3+ds1-2",
        "prometheus-node-exporter": "1.9.0-1+b4",
        "victoria-metrics": "1.112.0+ds1-2",
    },
    # Debian's testing: it keeps a version for some months, so only external tests need these.
    "forky": {
        "prometheus": "3.5.3+ds1-6",
        "promtool": "3.5.3+ds1-6",
        "victoria-metrics": "1.145.0+ds1-2",
    },
}


def program(package: str, directory: Path, suite: str = "trixie") -> Path:
    """The package's program of the same name, fetched into the directory the first time."""
    version = VERSIONS[suite][package]
    root = directory / f"{package}-{version}"
    return debian.unpack([f"{package}={version}"], suite, root) / "usr" / "bin" / package
