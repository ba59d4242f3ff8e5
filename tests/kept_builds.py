"""What tests compile, kept in build/ for later runs until anything that it is made of changes."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from native.cross.build import ROOT

KEPT = ROOT / "build" / "compiled-for-tests"


def kept(name: str, made_of: Iterable[Path | str], make: Callable[[Path], None]) -> Path:
    """The directory that `make` fills, perhaps in an earlier run. `made_of`: all files and texts,
    versions among them, that the result depends on."""
    digest = hashlib.sha256()
    for one in made_of:
        content = one.read_bytes() if isinstance(one, Path) else one.encode()
        digest.update(f"{one if isinstance(one, Path) else ''} {len(content)} ".encode() + content)
    place = KEPT / f"{name}-{digest.hexdigest()[:32]}"
    if not place.is_dir():
        KEPT.mkdir(parents=True, exist_ok=True)
        filled = Path(tempfile.mkdtemp(dir=KEPT))
        try:
            make(filled)
            os.rename(filled, place)
        except OSError:
            if not place.is_dir():  # otherwise another process was faster
                raise
        finally:
            shutil.rmtree(filled, ignore_errors=True)
    return place
