"""Models in processes without Python: the C example and the addon for Node.js, built for a test."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope import _tensor
from tests.c_symbols import NATIVE

TIMEOUT_S = 300
_C_SOURCES = Path(__file__).parent / "native" / "model"
NODE_SOURCE = NATIVE / "node"

Run = Callable[..., Any]


def c_program(folder: Path, name: str) -> Path:
    """The program of that name, compiled as opscope/model.h says."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = folder / name
    libraries = Path(_tensor.__file__).parent
    subprocess.run(
        [
            *(compiler, str(_C_SOURCES / f"{name}.c"), f"-I{opscope.get_include()}"),
            *(str(libraries / "libopscope_tensor.so"), str(libraries / "libopscope.so")),
            *(f"-Wl,-rpath,{libraries}", "-Wall", "-Werror", "-o", str(program)),
        ],
        check=True,
        timeout=TIMEOUT_S,
    )
    return program


def c_runner(folder: Path) -> Run:
    """`run(archive, *sizes, numbers=text)` runs the C example on one tensor."""
    program = c_program(folder, "run_model")

    def run(path: Path, *sizes: int, numbers: str) -> Any:
        return subprocess.run(
            [str(program), str(path), *map(str, sizes)],
            input=numbers,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    return run


def node() -> str:
    return shutil.which("node") or pytest.skip("needs Node.js")


def node_runner(folder: Path) -> Run:
    """`run(program, *arguments)` runs JavaScript in a process of its own, and returns what it gives
    to `say`."""
    addon = folder / "opscope.node"
    environ = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
    environ |= {"OPSCOPE_NODE_ADDON": str(addon), "OPSCOPE_NODE_OUT": str(addon)}
    environ["OPSCOPE_HOME"] = str(Path(opscope.get_include()).parent)
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    built = subprocess.run(
        [node(), NODE_SOURCE / "build.js"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    if "node_api.h is in none of" in built.stderr:
        pytest.skip("needs the headers of Node.js")
    assert built.returncode == 0, built.stderr

    def run(program: str, *arguments: object, **variables: str) -> Any:
        text = f"""
const opscope = require({json.dumps(str(NODE_SOURCE))});
const args = process.argv.slice(1);
const say = (value) => console.log(JSON.stringify(value));
(async () => {{ {program} }})().catch((error) => {{ console.error(error); process.exit(3); }});
"""
        done = subprocess.run(
            [node(), "--expose-gc", "-e", text, "--", *map(str, arguments)],
            env=environ | variables,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
