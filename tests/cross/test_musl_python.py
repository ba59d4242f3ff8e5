"""The compiler with which CPython is compiled for musl, and its tools. Nothing is compiled here."""

import subprocess
from pathlib import Path

import pytest

from native.cross import musl_python

TRIPLE = "aarch64-linux-musl"


def test_the_compiler_names_musl_and_knows_where_its_headers_are(tmp_path: Path) -> None:
    """Else configure takes the preprocessor of this machine, with its headers for glibc."""
    environ = {"CC": "/bin/echo", "CFLAGS": "--sysroot=/musl -nostdinc"}
    compiler = musl_python._compiler_for_musl(environ, TRIPLE, tmp_path / "cc")

    def said(*arguments: str) -> str:
        done = subprocess.run([compiler, *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert said("--print-multiarch") == TRIPLE
    assert said("-E", "a file.c") == "--sysroot=/musl -nostdinc -E a file.c"


@pytest.mark.parametrize(
    ("compiler", "tools"),
    [
        (
            "/gcc/bin/aarch64-linux-gnu-gcc-12",
            {
                "AR": "/gcc/bin/aarch64-linux-gnu-ar",
                "READELF": "/gcc/bin/aarch64-linux-gnu-readelf",
            },
        ),
        ("/usr/bin/gcc", {}),
    ],
)
def test_archives_for_another_machine_are_made_with_its_tools(
    compiler: str, tools: dict[str, str]
) -> None:
    """This machine's leave out their index, and the linker refuses them."""
    assert musl_python._tools(Path(compiler)) == tools
