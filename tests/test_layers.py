"""Layers point one way: a lower one never includes or imports a higher one.

C: `base <- record <- {tasks, segment} <- recorder <- trace <- {tensor, bridges}` and `tensor <-
model`; in `tensor` `base <- memory <- core <- {kernels, autograd} <- dispatch <- {backward, ops} <-
python`. Python: `_native <- record <- {tensor, bridges} <- attach, agent <- cli`; and importing
`opscope` imports no third-party module but cffi's own. test_repository.py tests names and lengths
of files.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.c_symbols import NATIVE, ROOT, calls

PACKAGES = ROOT / "agent", ROOT / "exporters"

# What folders of the tensor core may know: its public headers, all below it, and more from height
# to height.
BELOW_TENSOR = ("tensor", "base", "record", "tasks", "segment", "recorder", "trace")
BELOW_MEMORY = (*BELOW_TENSOR, "tensor/base")
BELOW_CORE = (*BELOW_MEMORY, "tensor/memory")
BELOW_TAPE = (*BELOW_CORE, "tensor/core")
BELOW_DISPATCH = (*BELOW_TAPE, "tensor/kernels", "tensor/autograd")
BELOW_BACKWARD = (*BELOW_DISPATCH, "tensor/dispatch")
# Folders whose own folders are layers too.
LAYERED = ("tensor", "model")
# Each folder of C, with the folders below it that it may know.
C_BELOW: dict[str, tuple[str, ...]] = {
    "base": (),
    "record": ("base",),
    "tasks": ("base", "record"),
    "segment": ("base", "record"),
    "recorder": ("base", "record", "segment"),
    "trace": ("base", "record", "tasks", "segment", "recorder"),
    "tensor": ("base", "record"),
    "tensor/base": BELOW_TENSOR,
    "tensor/memory": BELOW_MEMORY,
    "tensor/core": BELOW_CORE,
    "tensor/kernels": BELOW_TAPE,
    "tensor/autograd": BELOW_TAPE,
    "tensor/dispatch": BELOW_DISPATCH,
    "tensor/backward": BELOW_BACKWARD,
    "tensor/ops": BELOW_BACKWARD,
    # Of the tensor core it knows the error text alone.
    "model/document": ("base", "tensor", "tensor/base"),
    # Operators are names to it.
    "model/graph": ("base", "tensor", "tensor/base", "model/document"),
    "model/archive": ("base", "record", "tensor", "tensor/base", "tensor/memory", "tensor/core"),
    "model/program": (*BELOW_BACKWARD, "model/document", "model/graph"),
    "model/file": (
        "base",
        "record",
        "tensor",
        "tensor/base",
        "tensor/core",
        "model/document",
        "model/graph",
        "model/program",
        "model/archive",
    ),
    "tensor/python": (
        *BELOW_BACKWARD,
        "tensor/backward",
        "model/document",
        "model/archive",
        "model/graph",
        "model/program",
    ),
    "bridges": ("base", "record", "tasks", "segment", "recorder", "trace"),
    "bench": ("base", "record"),
    # Included before all others, in wheels.
    "cross": (),
    # It is built against the installed headers.
    "node": (),
    # Parts of the cffi module.
    "python": ("base", "recorder"),
}
# Each header in native/include, with the folder whose functions it declares.
HEADER_OF = {
    "status.h": "base",
    "export.h": "base",
    "record.h": "record",
    "range_inline.h": "record",
    "debug_info.h": "record",
    "usage.h": "record",
    "extra_files.h": "record",
    "fork.h": "tasks",
    "segment.h": "segment",
    "recorder.h": "recorder",
    "metric.h": "recorder",
    "memory.h": "trace",
    "trace.h": "trace",
    "tensor.h": "tensor",
    "autograd.h": "tensor",
    "operator.h": "tensor",
    "archive.h": "model/archive",
    "model.h": "model/file",
    "numpy.h": "bridges",
    "extension.h": "bridges",
    "blas.h": "bridges",
    "marks.h": "bridges",
    "interpreter.h": "bridges",
    "torch.h": "bridges",
    "bench.h": "bench",
}
# What their names begin with in an #include.
OUTSIDE = ("opscope/", "private/")
# Those of them that are not installed: for the Python bridges and the bench.
PRIVATE_HEADERS = {
    *("numpy.h", "extension.h", "blas.h", "marks.h", "interpreter.h", "torch.h", "bench.h"),
}

# Each part of the package with its height. A module imports from its own part, and from lower
# ones: parts of one height do not know each other, so no two can come into a circle.
HEIGHT = {
    # A fact about the package, which stands in its root.
    "opscope.__version__": 0,
    "opscope._native": 0,
    "opscope._tensor": 0,
    "opscope.demo_digits": 0,
    "opscope.metric_definition": 0,
    "opscope.compilation_metrics": 1,
    "opscope.model_metrics": 1,
    "opscope.name_lookup": 0,
    "opscope.nearest_name": 0,
    "opscope.printable": 0,
    "opscope.replace_file": 0,
    "opscope.metrics": 2,
    "opscope.total_deadline": 1,
    "opscope.errors": 1,
    "opscope.headers": 1,
    "opscope.config": 2,
    "opscope.extras": 2,
    "opscope.record": 3,
    "opscope.bridges": 4,
    "opscope.stamps": 4,
    "opscope.tensor": 4,
    "opscope.attachment": 5,
    "opscope.models": 5,
    "opscope.timeline": 5,
    "opscope.segments": 6,
    # Of a process, without the host's knowledge of it.
    "opscope.processes.container_mounts": 0,
    "opscope.processes.cgroups": 1,
    "opscope.host": 8,
    "opscope.processes": 9,
    "opscope.reports": 9,
    "opscope.control": 9,
    "opscope.demo_cnn": 10,
    "opscope.fleet": 10,
    "opscope.server": 10,
    "opscope": 11,
    "opscope_exporters": 11,
    "opscope.installation": 12,
    "opscope.serving": 12,
    "opscope.bench": 13,
    "opscope.kubernetes": 13,
    "opscope.ci": 14,
    "opscope.cli": 15,
    "opscope.__main__": 16,
    "pytest_opscope": 15,
    "opscope.demo": 14,
    "opscope.demo_serving": 14,
}

OURS = ("opscope", "opscope_exporters", "pytest_opscope")
THIRD_PARTY = ("numpy", "opentelemetry", "prometheus_client", "click", "rich", "google", "grpc")


def c_folder(path: Path) -> str:
    """The folder that a file of C belongs to, a public header to that of its functions."""
    first, second, *_ = (*path.relative_to(NATIVE).parts, "")
    if first == "include":
        return HEADER_OF[path.name]
    return f"{first}/{second}" if first in LAYERED else first


def c_includes() -> Iterator[tuple[Path, str]]:
    """(file, folder of what it includes) for each `#include "..."` below native/."""
    for path in sorted(NATIVE.rglob("*.[ch]")):
        if c_folder(path) == "node":
            continue  # what it includes is installed, or beside it
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            yield path, c_folder(NATIVE / ("include" if name.startswith(OUTSIDE) else "") / name)


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
            name
            for name in found
            if name.split(".")[0] in ("opscope", "opscope_exporters", "pytest_opscope")
        )


def python_files() -> Iterator[tuple[Path, str]]:
    for root in PACKAGES:
        for path in sorted(root.rglob("*.py")):
            names = path.relative_to(root).with_suffix("").parts
            yield path, ".".join(names[:-1] if names[-1] == "__init__" else names)


def test_c_includes_point_down() -> None:
    wrong = [
        f"{path.relative_to(NATIVE)} includes of {folder}"
        for path, folder in c_includes()
        if folder not in (c_folder(path), *C_BELOW[c_folder(path)])
    ]
    assert not wrong


def test_c_files_use_names_of_lower_folders() -> None:
    """What includes do not show: a public header declares functions of several folders."""
    wrong = [
        f"{name} uses {', '.join(names)} of {other}"
        for name, others in calls().items()
        for other, names in others.items()
        for folder in [c_folder(NATIVE / name)]
        if c_folder(NATIVE / other) not in (folder, *C_BELOW[folder])
    ]
    assert not wrong


def test_every_c_folder_and_public_header_has_its_place_in_the_layers() -> None:
    assert {path.name for path in (NATIVE / "include").rglob("*.h")} == {*HEADER_OF}
    assert {c_folder(path) for path in NATIVE.rglob("*.[ch]")} == {*C_BELOW}


def test_every_header_is_public_or_private_by_name() -> None:
    private = {path.name for path in (NATIVE / "include" / "private").iterdir()}
    assert private == PRIVATE_HEADERS


def test_only_public_headers_are_installed() -> None:
    installed = re.findall(
        r"install\(DIRECTORY (include\S*)", (NATIVE / "CMakeLists.txt").read_text()
    )
    assert installed == ["include/opscope"]


def test_one_bridge_includes_nothing_of_another() -> None:
    bridges = [path for path in (NATIVE / "bridges").iterdir() if path.is_dir()]
    assert len(bridges) > 1
    others = {path.name: {other.name for other in bridges} - {path.name} for path in bridges}
    assert [
        f"{path.name} includes {name}"
        for bridge in bridges
        for path in bridge.glob("*.[ch]")
        for name in re.findall(r'#include "(?:bridges|private)/(\w+)', path.read_text())
        if name in others[bridge.name]
    ] == []


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """What is left of the graph once all that leads to no circle has been taken away."""
    left = dict(graph)
    while ends := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in ends:
            del left[name]
    return sorted(left)


def test_c_files_include_each_other_in_no_circle() -> None:
    graph: dict[str, set[str]] = {}
    for path in sorted(NATIVE.rglob("*.[ch]")):
        unit = path.relative_to(NATIVE).with_suffix("").as_posix()
        names = re.findall(r'#include "([^"]+)\.h"', path.read_text())
        graph.setdefault(unit, set()).update(set(names) - {unit})
    assert circle_in(graph) == []


def test_record_layer_knows_nothing_of_tensors() -> None:
    files = sorted((NATIVE / "record").glob("*"))
    assert files
    assert [path.name for path in files if "tensor" in path.read_text().lower()] == []


def test_python_imports_point_down() -> None:
    wrong = []
    for path, module in python_files():
        height = HEIGHT[part_of(module)]
        for name in own_imports(path, module):
            if part_of(name) != part_of(module) and HEIGHT[part_of(name)] >= height:
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
