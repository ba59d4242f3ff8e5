"""Files that are damaged, hostile or something else: an error that names file, entry and reason."""

import io
import json
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope import tensor as ops


@pytest.fixture(scope="module")
def good() -> bytes:
    return _file({"w": ops.ones(3, 2), "n": [1, 2.0]})


def _file(obj: Any) -> bytes:
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        ops.save(obj, file.name)
        return Path(file.name).read_bytes()


def _zip(entries: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in entries.items():
            file.writestr(zipfile.ZipInfo(name), content, compress_type=method)
    return buffer.getvalue()


def _refused(directory: Path, content: bytes, *texts: str) -> None:
    path = directory / "file.pt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(path))) as raised:
        ops.load(path)
    assert str(raised.value).count(str(path)) == 1
    for text in texts:
        assert text in str(raised.value)


def _outcome(path: Path) -> tuple[Any, str]:
    """What is loaded, or the refusal."""
    try:
        return ops.load(path), ""
    except ValueError as error:
        return None, str(error)


def test_every_truncation_is_refused(tmp_path: Path, good: bytes) -> None:
    for length in range(len(good)):
        _refused(tmp_path, good[:length], "not a zip file")


@given(
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_changed_bytes_are_loaded_or_refused_with_the_path(
    good: bytes,
    changes: list[tuple[int, int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("changed") / "file.pt"
    content = bytearray(good)
    for at, byte in changes:
        content[at % len(content)] = byte
    path.write_bytes(content)
    loaded, refusal = _outcome(path)
    if loaded is None:
        assert refusal.startswith(str(path))
    else:
        # Only a tensor's own bytes have no checksum that loading checks.
        assert loaded["n"] == [1, 2.0]
        assert loaded["w"].shape == (3, 2)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\x", "a//x", "./x"])
def test_names_that_climb_are_refused(tmp_path: Path, name: str) -> None:
    content = _zip({"archive/version": b"1", "archive/AAAAAAAAAAAAA"[: len(name)]: b""})
    content = content.replace(b"archive/AAAAAAAAAAAAA"[: len(name)], name.encode())
    _refused(tmp_path, content, "its name is not a path within the archive")


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    content = _zip({"a/x": b"1", "a/y": b"2"}).replace(b"a/y", b"a/x")
    _refused(tmp_path, content, 'entry "a/x"', "two entries have this name")


def test_entries_that_overlap_are_refused(tmp_path: Path) -> None:
    content = bytearray(_zip({"a/x": b"1" * 40, "a/y": b"2" * 40}))
    directory = content.index(b"PK\x01\x02")
    second = content.index(b"PK\x01\x02", directory + 4)
    # The second entry's header is put into the first one's data.
    local = content[content.index(b"PK\x03\x04", 4) :][:33]
    content[33 : 33 + len(local)] = local
    content[second + 42 : second + 46] = struct.pack("<I", 33)
    _refused(tmp_path, bytes(content), "it overlaps another entry")


def _with_field(content: bytes, offset: int, value: bytes) -> bytes:
    """Changes a field of the directory's first record."""
    at = content.index(b"PK\x01\x02") + offset
    return content[:at] + value + content[at + len(value) :]


@pytest.mark.parametrize(
    ("offset", "value", "reason"),
    [
        (8, b"\x01", "it is encrypted"),
        (10, b"\x0c", "its compression is unknown"),
        (20, b"\xff\xff\xff\x7f", "it is stored, but its two sizes differ"),
        (20, b"\xff\xff\xff\x7f\xff\xff\xff\x7f", "its data lies outside of the file"),
        (34, b"\x01", "it lies on another disk"),
        (42, b"\xff\xff\xff\x7f", "it lies outside of the file"),
        (42, b"\x01", "its header does not agree with the directory"),
        (16, b"\x00\x00\x00\x00", "its content does not have its CRC-32"),
    ],
)
def test_a_lying_directory_is_refused(
    tmp_path: Path, offset: int, value: bytes, reason: str
) -> None:
    content = _zip({"a/model.json": b'{"object": 1, "tensors": []}', "a/version": b"1"})
    _refused(tmp_path, _with_field(content, offset, value), 'entry "', "model.json", reason)


def test_zip64_is_read(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in {
            "version": b"1",
            "model.json": b'{"object": 5, "tensors": []}',
        }.items():
            with file.open(zipfile.ZipInfo(name), "w", force_zip64=True) as entry:
                entry.write(content)
    (tmp_path / "file.pt").write_bytes(buffer.getvalue())
    assert ops.load(tmp_path / "file.pt") == 5


def test_deflated_documents_are_read(tmp_path: Path) -> None:
    document = b'{"object": "' + b"x" * 5000 + b'", "tensors": []}'
    content = _zip({"version": b"1", "model.json": document}, zipfile.ZIP_DEFLATED)
    (tmp_path / "file.pt").write_bytes(content)
    assert ops.load(tmp_path / "file.pt") == "x" * 5000
    # One byte of the deflated data, behind the second entry's header.
    at = content.index(b"model.json") + len("model.json") + 6
    changed = content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]
    _refused(tmp_path, changed, 'entry "model.json"')


def test_a_small_entry_that_claims_to_inflate_to_much_takes_no_memory(tmp_path: Path) -> None:
    content = _zip({"model.json": b"x" * 100, "version": b"1"}, zipfile.ZIP_DEFLATED)
    content = _with_field(content, 24, struct.pack("<I", 1 << 30))
    _refused(tmp_path, content, "its size cannot come from its deflated data")


TENSOR = {
    "storage": 0,
    "dtype": "float32",
    "sizes": [2],
    "strides": [1],
    "offset": 0,
    "requires_grad": False,
}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sizes": [3]}, "tensor 0"),
        ({"sizes": [1 << 61, 1 << 61], "strides": [1, 1]}, "tensor 0"),
        ({"sizes": [-1]}, "tensor 0"),
        ({"strides": [1 << 61]}, "tensor 0"),
        ({"strides": [-1]}, "tensor 0"),
        ({"strides": [1, 1]}, "tensor 0"),
        ({"offset": -1}, "tensor 0"),
        ({"offset": 1 << 70}, "'offset' is not an integer in range"),
        ({"sizes": [1] * 17, "strides": [1] * 17}, "tensor 0"),
        ({"sizes": [2.0]}, "'sizes' is not a list of integers"),
        ({"dtype": "float128"}, "unknown dtype 'float128'"),
        ({"dtype": 7}, "unknown dtype '7'"),
        ({"dtype": "int32", "requires_grad": True}, "int32 cannot require grad"),
        ({"storage": 4}, 'entry "tensors/4": there is no such entry'),
        ({"storage": "../0"}, "'storage' is not an integer"),
    ],
    ids=str,
)
def test_a_lying_tensor_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    document = {"object": {"tensor": 0}, "tensors": [TENSOR | change]}
    _refused(tmp_path, _archive(document), reason)


def _archive(document: Any) -> bytes:
    return _zip(
        {
            "a/version": b"1\n",
            "a/byteorder": b"little",
            "a/model.json": json.dumps(document).encode(),
            "a/tensors/0": b"\0" * 8,
        }
    )


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"tensor": 1}, "there is no tensor '1'"),
        ({"tensor": True}, "there is no tensor 'True'"),
        ({"dict": [[1]]}, "not a pair"),
        ({"dict": [[[1], 2]]}, "a list cannot be a key"),
        ({"bytes": "*"}, "not base64"),
        ({"float": "1"}, "unknown kind 'float'"),
        ({"eval": "1"}, "unknown kind 'eval'"),
        ({"a": 1, "b": 2}, "one key tells the kind"),
        ({}, "one key tells the kind"),
    ],
    ids=str,
)
def test_a_lying_tree_is_refused(tmp_path: Path, tree: Any, reason: str) -> None:
    _refused(tmp_path, _archive({"object": tree, "tensors": [TENSOR]}), '"model.json"', reason)


@pytest.mark.parametrize("document", [5, [], {}, {"object": 1}, {"tensors": []}])
def test_a_document_without_its_fields_is_refused(tmp_path: Path, document: Any) -> None:
    _refused(tmp_path, _archive(document), '"model.json"')


def test_containers_nest_to_a_limit(tmp_path: Path) -> None:
    tree: Any = 1
    for _ in range(100):
        tree = {"a": tree}
    ops.save(tree, tmp_path / "file.pt")
    assert ops.load(tmp_path / "file.pt") == tree
    with pytest.raises(ValueError, match="is nested more than 100 deep"):
        ops.save([tree], tmp_path / "file.pt")


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    text = '{"tensors": [], "object": ' + "[" * 100_000 + "]" * 100_000 + "}"
    _refused(tmp_path, _zip({"version": b"1", "model.json": text.encode()}), '"model.json"')
    tree: Any = 1
    for _ in range(101):
        tree = [tree]
    _refused(tmp_path, _archive({"object": tree, "tensors": []}), "nested too deep")


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"version": b"2"}, "version '2' of the format is unknown here"),
        ({"byteorder": b"big"}, "byte order 'big' is not supported"),
        ({"model.json": b"{"}, "not JSON"),
        ({"model.json": b"\xff"}, "not UTF-8"),
    ],
    ids=str,
)
def test_another_format_is_refused(tmp_path: Path, entries: dict[str, bytes], reason: str) -> None:
    whole = {"version": b"1", "byteorder": b"little", "model.json": b"{}"} | entries
    _refused(tmp_path, _zip(whole), f'entry "{next(iter(entries))}"', reason)


def test_other_files_are_refused(tmp_path: Path) -> None:
    _refused(tmp_path, _zip({"word/document.xml": b"<a/>"}), "not one of opscope.tensor.save")
    _refused(tmp_path, b"\x89PNG" * 30, "not a zip file")
    _refused(tmp_path, b"", "too short")
