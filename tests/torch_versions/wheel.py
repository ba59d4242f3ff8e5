"""A release of PyTorch from PyPI, without its part for CUDA: download, unpack, make importable."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path

from tests.torch_versions.cuda_stubs import FOREIGN, make_stubs

_LEFT_OUT = tuple(f"torch/lib/{name}" for name in FOREIGN)
_ON_DEVICES = ("nvidia", "cuda", "triton")
"""How the names of packages begin that only a program with a GPU needs."""
_NO_OVERRIDES = """

# By Opscope's tests: what replaces operators on a GPU asks CUDA's packages at the import.
def _register_all_overrides() -> None:
    pass
"""


def download(version: str, folder: Path) -> Path:
    """The wheel of that version for this Python, half a gigabyte or more."""
    _pip("download", "--no-deps", "--only-binary", ":all:", "--dest", folder, f"torch=={version}")
    (wheel,) = folder.glob("torch-*.whl")
    return wheel


def unpack(wheel: Path, site: Path) -> None:
    """Puts PyTorch and the packages that it needs on the CPU into the folder `site`."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.startswith(_LEFT_OUT)]
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        requirements = on_the_cpu(archive.read(metadata).decode())
        extract(archive, names, site)
    folder = site / "torch" / "lib"
    if make_stubs(_libraries(site), folder):
        registry = site / "torch" / "_native" / "registry.py"
        if registry.exists():  # from 2.14 on
            registry.write_text(registry.read_text() + _NO_OVERRIDES)
    # What it would warn of are packages of the environment that makes this one.
    _pip("install", "--no-warn-conflicts", "--target", site, *requirements)


def extract(archive: zipfile.ZipFile, names: Iterable[str], folder: Path) -> None:
    """As pip does: what is a program in the wheel is one in the folder. extractall forgets it."""
    for name in names:
        path = Path(archive.extract(name, folder))
        if archive.getinfo(name).external_attr >> 16 & 0o111 and path.is_file():
            path.chmod(0o755)


def on_the_cpu(metadata: str) -> list[str]:
    """Of a package's metadata, what it always needs and does not come with CUDA."""
    needed = HeaderParser().parsestr(metadata).get_all("Requires-Dist", [])
    return [
        requirement
        for requirement in needed
        if not requirement.startswith(_ON_DEVICES) and not re.search(r"\bextra\b", requirement)
    ]


def _libraries(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.so*") if path.is_file())


def _pip(command: str, *arguments: str | Path) -> None:
    options = ("--quiet", "--no-cache-dir", "--disable-pip-version-check")
    subprocess.run([sys.executable, "-m", "pip", command, *options, *arguments], check=True)
