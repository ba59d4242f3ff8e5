"""The shape of the tree: its top level, lengths of files, allowed names.

Covers the files that git tracks or would track (new, not ignored). test_layers.py tests imports.
"""

import re
import subprocess
from pathlib import Path

from tests.conftest import LONG, SLOW

ROOT = Path(__file__).parent.parent

TOP_LEVEL = {
    "pyproject.toml",
    "README.md",
    "native",
    "agent",
    "exporters",
    "dashboards",
    "tests",
    "Makefile",
    "LICENSE",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    ".ci",
    ".pre-commit-config.yaml",
}
LINE_LIMIT = 450
# Generated, or text by other authors.
LINE_LIMIT_EXEMPT = {"LICENSE"}
VAGUE_WORDS = {"util", "utils", "helper", "helpers", "common", "manager", "handler", "misc"}
# Where a person's or a build machine's files live; spelled in parts so that this file passes too.
MACHINE_PATHS = re.compile(rb"(?<![\w.])/(?:ho" rb"me|ro" rb"ot|wo" rb"rk|Us" rb"ers)/\w")


def tracked_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    files = [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]
    assert files
    return files


def test_top_level_is_as_designed() -> None:
    found = {path.parts[0] for path in tracked_files()}
    unexpected = {name for name in found - TOP_LEVEL if not re.fullmatch(r"\.[\w-]+", name)}
    assert not unexpected


def test_no_file_is_long() -> None:
    long = [
        (str(path), lines)
        for path in tracked_files()
        if path.suffix in (".c", ".h", ".py", ".txt", ".md", ".toml", "")
        and str(path) not in LINE_LIMIT_EXEMPT
        and (lines := (ROOT / path).read_bytes().count(b"\n")) > LINE_LIMIT
    ]
    assert not long


# Modules that PyTorch's programs import by these names.
NAMES_OF_PYTORCH = {
    Path("agent/opscope/tensor", name)
    for name in (
        "nn/utils/__init__.py",
        "nn/utils/rnn.py",
        "utils/__init__.py",
        "utils/data.py",
    )
}


def test_no_file_has_a_vague_name() -> None:
    vague = [
        str(path)
        for path in tracked_files()
        if any(VAGUE_WORDS & set(re.split(r"[_.-]", part.lower())) for part in path.parts)
        and path not in NAMES_OF_PYTORCH
    ]
    assert not vague


def test_no_file_names_a_path_of_one_machine() -> None:
    naming = [
        str(path) for path in tracked_files() if MACHINE_PATHS.search((ROOT / path).read_bytes())
    ]
    assert not naming


def test_every_c_and_python_file_begins_with_what_it_does() -> None:
    silent = []
    for path in tracked_files():
        text = (ROOT / path).read_text() if path.suffix in (".c", ".h", ".py") else ""
        if text.strip() and not text.lstrip().startswith(("/*", '"""', "#!", 'r"""')):
            silent.append(str(path))
    assert not silent


def test_every_entry_of_slow_and_long_tests_leads_to_a_test() -> None:
    files = [path for path in tracked_files() if path.name.startswith("test_")]
    for entry in (*SLOW, *LONG):
        place, _, name = entry.partition("::")
        texts = [path.read_text() for path in files if str(path).startswith(f"tests/{place}")]
        assert any(f"def {name.partition('[')[0]}" in text for text in texts), entry
