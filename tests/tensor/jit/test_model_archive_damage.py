"""Archives of models that are damaged or hostile: an error that names file, entry and reason."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opscope import tensor as ops
from opscope.models import describe
from opscope.tensor import jit, nn


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("good") / "model.pt"
    jit.save(jit.trace(nn.Linear(3, 2), ops.ones(1, 3)), path)
    return path.read_bytes()


def _entries(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def _zip(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, content in entries.items():
            file.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def _refused(directory: Path, content: bytes, reason: str) -> None:
    path = directory / "file.pt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(path))) as raised:
        jit.load(path)
    assert re.search(reason, str(raised.value)), str(raised.value)


def test_a_truncated_file_is_refused(tmp_path: Path, good: bytes) -> None:
    for length in range(0, len(good), 37):
        _refused(tmp_path, good[:length], "not a zip file")


def _outcome(path: Path) -> Any:
    """What the loaded model returns, or the refusal."""
    try:
        return jit.load(path)(ops.ones(1, 3)).shape
    except ValueError as error:
        return str(error)


def test_a_damaged_byte_is_refused_or_harmless(tmp_path: Path, good: bytes) -> None:
    path = tmp_path / "file.pt"
    for place in range(0, len(good), 7):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x41]) + good[place + 1 :])
        outcome = _outcome(path)
        assert outcome == (1, 2) or str(path) in outcome


@pytest.mark.parametrize("entry", ["version", "model.json", "graph/forward.ir", "tensors/0"])
def test_a_missing_entry_is_named(tmp_path: Path, good: bytes, entry: str) -> None:
    entries = _entries(good)
    del entries[f"archive/{entry}"]
    _refused(tmp_path, _zip(entries), entry if entry != "model.json" else "model.json")


def _changed(good: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    entries = _entries(good)
    document = json.loads(entries["archive/model.json"])
    change(document)
    entries["archive/model.json"] = json.dumps(document).encode()
    return _zip(entries)


def _put(*path: Any) -> Callable[[dict[str, Any]], object]:
    """Sets the last of `path` at the keys before it."""

    def change(document: Any) -> None:
        *keys, last, value = path
        for key in keys:
            document = document[key]
        document[last] = value

    return change


LIES: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (_put("model", 3), "model.json.*'entry'|model.json.*'attributes'"),
    (_put("model", "entry", "backward"), "there is no function 'backward', the entry"),
    (_put("model", "entry", 3), "'entry' is no string"),
    (_put("model", "functions", ["forward", "other"]), r"graph/other\.ir"),
    (_put("model", "functions", ["../forward"]), r"'../forward' is no name of a function"),
    (_put("model", "functions", "forward"), "'functions' is no list of strings"),
    (_put("model", "attributes", {}), "weight"),
    (_put("model", "attributes", []), "'attributes' is no object"),
    (_put("model", "attributes", "weight", 99), "there is no tensor '99'"),
    (_put("model", "attributes", "weight", True), "there is no tensor 'True'"),
    (_put("model", "parameters", ["other"]), "there is no attribute 'other', a parameter"),
    (_put("model", "signature", [["input"], ["other"]]), "signature has 2 parameters"),
    (_put("model", "signature", [["1 2"]]), "'signature' is no list of names and defaults"),
    (_put("model", "signature", [["input", {"tensor": 0}]]), "a default .* is the tensor 0"),
    (_put("tensors", 0, "sizes", [1 << 40]), "tensor 0"),
    (_put("tensors", 0, "offset", -4), "tensor 0"),
    (_put("tensors", 0, "dtype", "float31"), "unknown dtype"),
]


@pytest.mark.parametrize(("change", "reason"), LIES, ids=[reason for _, reason in LIES])
def test_a_lie_is_named(
    tmp_path: Path, good: bytes, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    _refused(tmp_path, _changed(good, change), reason)


def _with_graph(good: bytes, text: str) -> bytes:
    entries = _entries(good)
    entries["archive/graph/forward.ir"] = text.encode()
    return _zip(entries)


CALLS_ITSELF = """\
graph(%input : Tensor):
  %1 : Tensor = prim::CallFunction[name="forward"](%input)
  return (%1)
"""
CALLS_NOBODY = CALLS_ITSELF.replace('"forward"', '"nobody"')
UNKNOWN_OPERATOR = """\
graph(%input : Tensor):
  %1 : Tensor = core::launch(%input)
  return (%1)
"""
UNKNOWN_ATTRIBUTE = """\
graph(%input : Tensor):
  %1 : Tensor = prim::GetAttr[name="other"]()
  return (%1)
"""
NOT_SSA = """\
graph(%input : Tensor):
  %1 : Tensor = prim::If(%input)
    block0():
      -> (%input)
    block1():
      -> (%input)
  return (%1)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("graph(", r'entry "graph/forward\.ir": line 1'),
        (NOT_SSA, r'entry "graph/forward\.ir": .*prim::If'),
        (CALLS_ITSELF, r'entry "graph/forward\.ir": .*leads back to itself'),
        (CALLS_NOBODY, r'entry "graph/forward\.ir": .*nobody'),
        (UNKNOWN_OPERATOR, r'entry "graph/forward\.ir": .*core::launch'),
        (UNKNOWN_ATTRIBUTE, r'entry "graph/forward\.ir": .*other'),
    ],
)
def test_a_graph_that_cannot_run_is_refused(
    tmp_path: Path, good: bytes, text: str, reason: str
) -> None:
    _refused(tmp_path, _with_graph(good, text), reason)


def test_the_function_that_cannot_run_is_named_and_not_its_caller(tmp_path: Path) -> None:
    def halved(x: ops.Tensor) -> ops.Tensor:
        return x / 2

    def twice(x: ops.Tensor) -> ops.Tensor:
        return halved(x) + halved(x)

    jit.save(jit.script(twice), tmp_path / "good.pt")
    entries = _entries((tmp_path / "good.pt").read_bytes())
    (entry,) = (name for name in entries if name.endswith("halved.ir"))
    entries[entry] = entries[entry].replace(b"core::div", b"core::launch")
    reason = re.escape(f'entry "{entry.removeprefix("archive/")}": ') + ".*core::launch"
    _refused(tmp_path, _zip(entries), reason)


def test_a_later_version_is_refused(tmp_path: Path, good: bytes) -> None:
    entries = _entries(good)
    entries["archive/version"] = b"2\n"
    _refused(tmp_path, _zip(entries), r'entry "version": version .2.')


def test_no_code_of_the_file_runs(tmp_path: Path, good: bytes) -> None:
    entries = _entries(good)
    entries["archive/code/net.py"] = b"raise SystemExit"
    (tmp_path / "file.pt").write_bytes(_zip(entries))
    assert jit.load(tmp_path / "file.pt")(ops.ones(1, 3)).shape == (1, 2)
    assert describe(tmp_path / "file.pt").operators == {"core::linear": 1}
