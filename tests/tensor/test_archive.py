"""What `save` writes, `load` gives back, mapped from the file."""

import math
import os
import subprocess
import sys
import threading
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opscope
from opscope import tensor as ops
from opscope.tensor import nn
from opscope.tensor.archive.files import Archive

DTYPES = [
    ops.float32,
    ops.float64,
    ops.int32,
    ops.int64,
    ops.uint8,
    ops.bool,
    ops.bfloat16,
    ops.float16,
]

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(-9, 9) | st.none(), inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=8,
)


def _again(obj: Any, directory: Path) -> Any:
    ops.save(obj, directory / "file.pt")
    return ops.load(directory / "file.pt")


def _same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)


@given(obj=plain)
def test_containers_come_back(obj: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert _same(_again(obj, tmp_path_factory.mktemp("archive")), obj)


def test_floats_that_json_has_not_come_back(tmp_path: Path) -> None:
    nan, high, low = _again([math.nan, math.inf, -math.inf], tmp_path)
    assert math.isnan(nan)
    assert (high, low) == (math.inf, -math.inf)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4)], ids=str)
def test_tensors_come_back(tmp_path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    made = ops.tensor(np.arange(math.prod(shape)).reshape(shape) % 2).to(dtype)
    found = _again({"a": made, "dtype": dtype}, tmp_path)
    assert found["a"].dtype is dtype is found["dtype"]
    assert found["a"].shape == shape
    assert ops.equal(found["a"].to(ops.float64), made.to(ops.float64))


def test_views_share_their_storage_again_and_bring_no_more_than_they_use(tmp_path: Path) -> None:
    large = ops.arange(1_000_000.0).reshape(1000, 1000)
    saved = {"row": large[5], "part": large[5:7, 2:9:3], "turned": large[4:6].t()}
    found = _again(saved, tmp_path)
    assert (tmp_path / "file.pt").stat().st_size < 20_000
    for name, one in saved.items():
        assert ops.equal(found[name], one), name
        assert found[name].strides == one.strides
    found["row"][2] = -1.0
    assert found["part"][0, 0].item() == -1.0
    assert found["turned"][2, 1].item() == -1.0


def test_one_tensor_twice_is_one_tensor(tmp_path: Path) -> None:
    one = ops.ones(3)
    first, (second,) = _again([one, (one,)], tmp_path)
    assert first is second


def test_a_modules_state_comes_back(tmp_path: Path) -> None:
    layers = [nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)]
    model, other = (
        nn.Sequential(*layers),
        nn.Sequential(
            *(type(one)(*size) for one, size in zip(layers, [(4, 3), (3,), (3, 2)], strict=True))
        ),
    )
    other.load_state_dict(_again(model.state_dict(), tmp_path))
    inputs = ops.randn(5, 4)
    assert ops.equal(model.eval()(inputs), other.eval()(inputs))


def test_parameters_stay_parameters(tmp_path: Path) -> None:
    trained, frozen = nn.Parameter(ops.ones(2)), nn.Parameter(ops.ones(2), requires_grad=False)
    leaf = ops.ones(2, requires_grad=True)
    found = _again([trained, frozen, leaf], tmp_path)
    assert [type(one) for one in found] == [nn.Parameter, nn.Parameter, ops.Tensor]
    assert [one.requires_grad for one in found] == [True, False, True]
    found[0].sum().backward()
    assert ops.equal(found[0].grad, ops.ones(2))


def test_a_write_to_a_loaded_tensor_never_reaches_the_file(tmp_path: Path) -> None:
    first = _again(ops.zeros(100), tmp_path)
    first.fill_(1.0)
    assert ops.equal(ops.load(tmp_path / "file.pt"), ops.zeros(100))


def test_tensors_begin_at_multiples_of_64_bytes_in_a_plain_zip_file(tmp_path: Path) -> None:
    ops.save([ops.ones(n) for n in range(20)], tmp_path / "file.pt", extra_files={"x": b"1" * 7})
    with zipfile.ZipFile(tmp_path / "file.pt") as file:
        assert file.testzip() is None
        assert {one.compress_type for one in file.infolist()} == {zipfile.ZIP_STORED}
    archive = Archive(tmp_path / "file.pt")
    assert {offset % 64 for _, _, offset, _ in archive.entries.values()} == {0}
    assert ops.load(tmp_path / "file.pt")[5].data_ptr() % 64 == 0


def test_two_saves_of_the_same_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        ops.save({"w": ops.ones(3)}, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


READS = """
import sys
from opscope import tensor as ops
loaded = ops.load(sys.argv[1])
total = loaded.sum().item()
facts, is_inside = {}, False
for line in open("/proc/self/smaps"):
    first, *rest = line.split()
    if not first.endswith(":"):
        is_inside = rest[-1] == sys.argv[1]
    elif is_inside:
        facts[first] = rest[0]
print(total, facts["Private_Dirty:"], facts["Rss:"], flush=True)
sys.stdin.read()
"""


def test_processes_share_the_pages_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "large.pt"
    ops.save(ops.ones(4 << 20), path)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            total, dirty_kib, resident_kib = map(float, reader.stdout.readline().split())
            assert total == 4 << 20
            assert dirty_kib == 0
            assert resident_kib >= 16 << 10
    finally:
        for reader in readers:
            reader.communicate()


def test_a_tensor_outlives_its_archive_and_the_file(tmp_path: Path) -> None:
    found = _again({"a": ops.arange(1000.0)}, tmp_path)["a"]
    os.unlink(tmp_path / "file.pt")
    ops.save(ops.zeros(1000), tmp_path / "file.pt")
    assert found[999].item() == 999.0


# ---- extra files -----------------------------------------------------------------------------


def test_extra_files_are_filled_in(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    ops.save(1, path, extra_files={"notes/a.txt": "text", "raw": b"\0\xff"})
    wanted: dict[str, bytes | None] = {"notes/a.txt": None, "raw": b""}
    assert ops.load(path, extra_files=wanted) == 1
    assert wanted == {"notes/a.txt": b"text", "raw": b"\0\xff"}
    with pytest.raises(KeyError, match=r"no extra file 'missing'; it has: notes/a.txt, raw"):
        ops.load(path, extra_files={"missing": None})


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "", "a\n", "a\\b"])
def test_a_name_that_leaves_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a path within the archive"):
        ops.save(1, tmp_path / "file.pt", extra_files={name: b""})
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def hook() -> Any:
    yield opscope.set_export_extra_files_hook
    opscope.set_export_extra_files_hook(None)


def test_a_hook_adds_files_and_the_programs_own_take_precedence(tmp_path: Path, hook: Any) -> None:
    hook(lambda: {"job": "nightly", "mine": b"hook", "../climbs": b""})
    ops.save(1, tmp_path / "file.pt", extra_files={"mine": b"own"})
    archive = Archive(tmp_path / "file.pt")
    assert {name: archive.extra(name) for name in archive.extra_names()} == {
        "job": b"nightly",
        "mine": b"own",
    }


def test_a_hook_that_raises_spoils_no_save_and_is_counted(
    tmp_path: Path, hook: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> dict[str, bytes]:
        raise LookupError("no such job")

    before = opscope.export_extra_files_errors()
    hook(broken)
    for _ in range(3):
        assert _again([ops.ones(2)], tmp_path)[0].shape == (2,)
    hook(lambda: {"a": 1})
    assert _again(5, tmp_path) == 5
    assert opscope.export_extra_files_errors() == before + 4
    assert sum("extra-files hook" in record.message for record in caplog.records) <= 1


def test_a_hook_runs_for_saves_of_any_thread(tmp_path: Path, hook: Any) -> None:
    hook(lambda: {"thread": threading.current_thread().name})
    threads = [
        threading.Thread(target=ops.save, args=(1, tmp_path / f"{n}"), name=f"saver-{n}")
        for n in range(4)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for n in range(4):
        assert Archive(tmp_path / f"{n}").extra("thread") == f"saver-{n}".encode()


# ---- refusals and failures -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        ({"a": [1, object()]}, r"object\['a'\]\[1\] is a object"),
        ((np.float32(1),), r"object\[0\] is a float32"),
        ({(1, object()): 1}, r"a key of object\[1\] is a object"),
    ],
)
def test_other_objects_are_refused_with_their_place(tmp_path: Path, obj: Any, place: str) -> None:
    with pytest.raises(TypeError, match=f"{place}: only tensors, .* can be saved"):
        ops.save(obj, tmp_path / "file.pt")
    assert list(tmp_path.iterdir()) == []


def test_a_container_that_contains_itself_is_refused(tmp_path: Path) -> None:
    outer: list[Any] = [{}]
    outer[0]["outer"] = outer
    with pytest.raises(ValueError, match=r"object\[0\]\['outer'\] contains itself"):
        ops.save(outer, tmp_path / "file.pt")


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    ops.save("old", path)
    with pytest.raises(TypeError):
        ops.save(object(), path)
    with pytest.raises(ValueError, match="not a path"):
        ops.save("new", path, extra_files={"..": b""})
    assert ops.load(path) == "old"
    assert os.listdir(tmp_path) == ["file.pt"]


def test_mode_and_link_of_the_old_file_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.pt", tmp_path / "link.pt"
    ops.save(1, real)
    real.chmod(0o640)
    link.symlink_to(real)
    ops.save(2, link)
    assert link.is_symlink()
    assert ops.load(real) == 2
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/nowhere/file.pt", FileNotFoundError),
        ("/dev/null", ValueError),
        ("/tmp", OSError),
    ],
)
def test_a_path_that_cannot_be_read_is_named(path: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=path):
        ops.load(path)


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"nowhere/file.pt: cannot be written: No such file"):
        ops.save(1, tmp_path / "nowhere" / "file.pt")
    with pytest.raises(ValueError, match="/dev/null: not a regular file"):
        ops.save(1, "/dev/null")
