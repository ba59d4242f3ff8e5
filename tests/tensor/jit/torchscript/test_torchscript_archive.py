"""TorchScript archives: modules, constants and code, read from what PyTorch wrote."""

import zipfile
from pathlib import Path

import pytest

from opscope.tensor.archive.files import Archive
from opscope.tensor.jit.torchscript.archive import Instance, is_torchscript, read

torch = pytest.importorskip("torch")

# PyTorch announces that torch.export replaces TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.fc(x) * 2.0


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt"
    torch.jit.script(Net().eval()).save(str(path))
    return path


def with_entry(path: Path, ending: str, content: bytes) -> Path:
    """A copy of the archive with other content in one entry."""
    copy = path.with_name("changed.pt")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            new.writestr(name, content if name.endswith(ending) else old.read(name))
    return copy


def test_modules_keep_their_tensors_and_plain_attributes(saved: Path) -> None:
    archive = Archive(saved)
    assert is_torchscript(archive)
    fc = read(archive).root.attributes["fc"]
    assert isinstance(fc, Instance)
    assert fc.attributes["training"] is False
    want = torch.jit.load(str(saved)).fc.weight
    assert fc.attributes["weight"].tolist() == want.tolist()


def test_methods_are_found_by_the_class_of_an_instance(saved: Path) -> None:
    program = read(Archive(saved))
    method = program.method(program.root, "forward")
    assert method is not None
    assert [each.arg for each in method.args.args] == ["self", "x"]
    assert program.method(program.root, "backward") is None


def test_constants_are_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "traced.pt"
    shift = torch.tensor([1.0, 2.0])
    torch.jit.trace(lambda x: x + shift, torch.zeros(2)).save(str(path))
    (constant,) = read(Archive(path)).constants
    assert constant.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("entry", "content", "reason"),
    [
        (".py", b"class Net(", "no code that parses"),
        (".py", b"import os\n", "Import outside a function"),
        (".py", b"(" * 100000, "no code that parses"),
        ("data.pkl", b"\x80\x02", "data.pkl"),
        ("data.pkl", b"\x80\x02}.", "no module"),
        ("constants.pkl", b"\x80\x02}.", "no tuple"),
        ("constants.pkl", b"\x80\x02cos\nsystem\n.", "constants.pkl"),
    ],
)
def test_damaged_entries_are_refused(saved: Path, entry: str, content: bytes, reason: str) -> None:
    changed = with_entry(saved, entry, content)
    with pytest.raises(ValueError, match=reason) as raised:
        read(Archive(changed))
    assert str(changed) in str(raised.value)
