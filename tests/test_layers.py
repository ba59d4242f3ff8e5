"""Layers point one way: a lower one never includes or imports a higher one.

C: ``base <- record <- {tensor, bridges} <- bench``. Python: ``_native <- record <- {tensor,
bridges} <- attach, agent <- cli``; and importing ``opscope`` brings in no third-party module but
cffi's own. Not the place for what a file may be called or how long it may be
(test_repository.py).
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
NATIVE = ROOT / "native"
PACKAGES = ROOT / "agent", ROOT / "exporters"

# What each folder of C may include of the tree: folders, and public headers by name.
C_MAY_INCLUDE = {
    "base": ("base/", "opscope/status.h", "opscope/export.h", "opscope/segment.h"),
    "record": ("base/", "record/", "opscope/"),
    "tensor": ("base/", "record/", "tensor/", "opscope/"),
    "bridges": ("base/", "record/", "bridges/", "opscope/"),
    "bench": ("base/", "opscope/"),
    "include/opscope": ("opscope/",),
}
# Public headers of the upper layers, each with the folders that may know it.
UPPER_HEADERS = {
    "opscope/tensor.h": ("tensor",),
    "opscope/autograd.h": ("tensor",),
    "opscope/operator.h": ("tensor",),
    "opscope/numpy.h": ("bridges",),
    "opscope/bench.h": ("bench",),
}

# Each part of the package with its height. A module imports parts no higher than its own.
HEIGHT = {
    "opscope._native": 0,
    "opscope._tensor": 0,
    "opscope.errors": 0,
    "opscope.config": 0,
    "opscope.headers": 0,
    "opscope.metrics": 0,
    "opscope.demo_digits": 0,
    "opscope.record": 1,
    "opscope.tensor": 2,
    "opscope.bridges": 2,
    "opscope.timeline": 2,
    "opscope.attachment": 3,
    "opscope.agent": 3,
    "opscope_exporters": 3,
    "opscope": 4,
    # A fact about the package, which stands in its root.
    "opscope.__version__": 0,
    "opscope.fleet": 5,
    "opscope.installation": 5,
    "opscope.bench": 5,
    "opscope.demo": 5,
    "opscope.demo_cnn": 5,
    "opscope.cli": 6,
}

THIRD_PARTY = ("numpy", "opentelemetry", "prometheus_client", "click", "rich", "google", "grpc")


def c_includes() -> Iterator[tuple[str, str, str]]:
    """(folder, file name, included name) for each ``#include "..."`` below native/."""
    for folder in C_MAY_INCLUDE:
        for path in sorted((NATIVE / folder).rglob("*.[ch]")):
            for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
                yield folder, path.name, name


def part_of(module: str) -> str:
    """The entry of HEIGHT that a dotted module name falls under."""
    names = module.split(".")
    for length in range(len(names), 0, -1):
        part = ".".join(names[:length])
        if part in HEIGHT:
            return part
    raise LookupError(module)


def own_imports(path: Path, module: str) -> Iterator[str]:
    """Dotted names that a file of the package imports from the package, at any place in it."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package.split(".")[: len(package.split(".")) + 1 - node.level])
            base = ".".join(filter(None, (above if node.level else "", node.module)))
            found = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (
            name for name in found if name.split(".")[0] in ("opscope", "opscope_exporters")
        )


def python_files() -> Iterator[tuple[Path, str]]:
    for root in PACKAGES:
        for path in sorted(root.rglob("*.py")):
            names = path.relative_to(root).with_suffix("").parts
            yield path, ".".join(names[:-1] if names[-1] == "__init__" else names)


def test_c_includes_point_down() -> None:
    wrong = [
        f"{folder}/{file} includes {name}"
        for folder, file, name in c_includes()
        if not name.startswith(C_MAY_INCLUDE[folder])
        or folder not in (*UPPER_HEADERS.get(name, (folder,)), "include/opscope")
    ]
    assert not wrong


def test_every_c_folder_has_its_place_in_the_layers() -> None:
    files = {path.relative_to(NATIVE).as_posix() for path in NATIVE.rglob("*.[ch]")}
    assert [
        name for name in files if not name.startswith(tuple(f"{f}/" for f in C_MAY_INCLUDE))
    ] == []


def test_record_layer_knows_nothing_of_tensors() -> None:
    files = sorted((NATIVE / "record").glob("*"))
    assert files
    assert [path.name for path in files if "tensor" in path.read_text().lower()] == []


def test_python_imports_point_down() -> None:
    wrong = []
    for path, module in python_files():
        height = HEIGHT[part_of(module)]
        for name in own_imports(path, module):
            if HEIGHT[part_of(name)] > height:
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_every_python_module_has_its_place_in_the_layers() -> None:
    modules = {module for _, module in python_files()}
    assert "opscope" in modules
    assert [name for name in modules - {"opscope"} if part_of(name) == "opscope"] == []


def test_importing_opscope_brings_in_no_third_party_module() -> None:
    script = "import sys; import opscope; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "opscope" in loaded
    assert loaded.isdisjoint(THIRD_PARTY)
