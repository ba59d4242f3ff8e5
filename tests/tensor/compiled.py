"""Shared libraries that the tests compile, with the installed headers and without libraries."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import opscope

HERE = Path(__file__).parent


def compile_library(out: Path, source: str | Path, *options: str) -> Path:
    """`source`: a file, or the text of one. Returns `out`."""
    if isinstance(source, str):
        text, source = source, out.with_suffix(".c")
        source.write_text(text)
    configured = (sysconfig.get_config_var("CC") or "cc").split()[0]
    compiler = shutil.which("cc") or configured
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        [
            *(compiler, "-std=c11", "-shared", "-fPIC", *warnings, *options),
            *(f"-I{opscope.get_include()}", str(source), "-o", str(out)),
        ],
        check=True,
        timeout=300,
    )
    return out
